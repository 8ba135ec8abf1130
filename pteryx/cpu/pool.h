// Threads that share loops. One job at a time: whoever comes while another runs does its loop
// alone.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace pteryx::cpu {

class Pool {
 public:
  // So many threads, with the caller of run; fewer where the system has no more.
  explicit Pool(size_t threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  size_t threads() const { return threads_; }

  struct Workers;  // the platform's own: who calls work

  // Calls body(item, thread) once for each item < count, thread < threads(); returns when all are
  // done. Which thread does an item is not fixed: items have to be the same whoever does them.
  // count is below 2^32. A call from inside a body, or beside another, runs alone, as thread 0 (of
  // memory of its own, where bodies use some for each thread); one from inside a body that runs
  // alone itself finds the threads when they are free again.
  template <class Body>
  void run(size_t count, Body&& body) {
    run_erased(
        count,
        [](void* b, size_t item, size_t thread) {
          (*static_cast<std::remove_reference_t<Body>*>(b))(item, thread);
        },
        &body);
  }

 private:
  using Function = void (*)(void*, size_t, size_t);

  void run_erased(size_t count, Function function, void* body);
  void work(size_t thread);
  void take_items(uint32_t job, size_t thread);
  static uint32_t await_change(const std::atomic<uint32_t>& value, uint32_t old, size_t thread);

  // What the platform has: how often to look before sleeping, and sleeping until woken, or until
  // any time before that.
  static const int kSpins;
  static void sleep(const std::atomic<uint32_t>& value, uint32_t old, size_t thread);
  static void wake(std::atomic<uint32_t>& value);

  // The job in the upper half, items nobody has taken in the lower: one word, so that a thread that
  // is late cannot take an item of a later job for one of its own.
  alignas(64) std::atomic<uint64_t> open_{0};
  alignas(64) std::atomic<uint32_t> unfinished_{0};
  // The last job; what sleeping workers wait for.
  alignas(64) std::atomic<uint32_t> job_{0};
  std::atomic<uint32_t> stop_{0};
  alignas(64) std::atomic<Function> function_{nullptr};
  std::atomic<void*> body_{nullptr};
  std::atomic<uint32_t> count_{0};
  std::atomic_flag busy_;
  size_t threads_;
  std::unique_ptr<Workers> workers_;
};

// A pool of so many threads, 0: usable_cores() of processors.h. Those who ask for the same number
// while it lives share it.
std::shared_ptr<Pool> shared_pool(size_t threads);

}  // namespace pteryx::cpu
