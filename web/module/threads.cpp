// The threads of a module whose memory is shared: workers that the script has started, one for each
// number from 1. The C library knows nothing of them, so neither locks nor allocates for them: they
// run what a Pool shares out, and nothing else.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/pool.h"
#include "pteryx/cpu/processors.h"

#define PTERYX_EXPORT(name) extern "C" __attribute__((export_name(#name)))

namespace pteryx::cpu {
namespace {

// Set before the first load, and never again: one pool for all, as large as there are threads.
Pool* pool = nullptr;
bool caller_may_sleep = false;

}  // namespace

size_t usable_cores() { return pool == nullptr ? 1 : pool->threads(); }

struct Pool::Workers {
  static void work(size_t thread) { pool->work(thread); }
};

// About 20 us.
const int Pool::kSpins = 20000;

// The thread of a page must not sleep; it looks again.
void Pool::sleep(const std::atomic<uint32_t>& value, uint32_t old, size_t thread) {
  if (thread == 0 && !caller_may_sleep) return;
  auto* const word = reinterpret_cast<int*>(const_cast<std::atomic<uint32_t>*>(&value));
  __builtin_wasm_memory_atomic_wait32(word, static_cast<int>(old), -1);
}
void Pool::wake(std::atomic<uint32_t>& value) {
  __builtin_wasm_memory_atomic_notify(reinterpret_cast<int*>(&value), ~0U);
}

Pool::Pool(size_t threads) : threads_(threads) {}
Pool::~Pool() = default;

std::shared_ptr<Pool> shared_pool(size_t /*threads*/) {
  if (pool == nullptr) pool = new Pool(1);  // NOLINT: lives as long as the module
  return {pool, [](Pool*) {}};
}

void set_threads(size_t threads, bool may_sleep) {
  pool = new Pool(threads);  // NOLINT
  caller_may_sleep = may_sleep;
}
void run_thread(size_t thread) { Pool::Workers::work(thread); }

}  // namespace pteryx::cpu

using namespace pteryx::cpu;  // NOLINT: all below is exports

// So many threads, with the caller.
PTERYX_EXPORT(threads_set) void export_threads_set(size_t threads, int32_t may_sleep) {
  set_threads(threads, may_sleep != 0);
}
// What a thread does until the script ends it.
PTERYX_EXPORT(thread_run) void export_thread_run(size_t thread) { run_thread(thread); }
