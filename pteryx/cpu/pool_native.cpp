// Threads of the system that share loops.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "pteryx/base/thread.h"
#include "pteryx/cpu/pool.h"
#include "pteryx/cpu/processors.h"

namespace pteryx::cpu {

// About 20 us: longer than the gaps between the layers of a model, shorter than anyone notices.
const int Pool::kSpins = 1000;

void Pool::sleep(const std::atomic<uint32_t>& value, uint32_t old, size_t /*thread*/) {
  value.wait(old, std::memory_order_acquire);
}
void Pool::wake(std::atomic<uint32_t>& value) { value.notify_all(); }

struct Pool::Workers {
  std::vector<Thread> threads;
};

// Workers look at threads_ in jobs only, of which there is none before this is over.
Pool::Pool(size_t threads) : threads_(1), workers_(std::make_unique<Workers>()) {
  for (; threads_ < threads; ++threads_) {
    std::optional<Thread> worker = Thread::start([this, i = threads_] { work(i); });
    if (!worker) return;
    workers_->threads.push_back(std::move(*worker));
  }
}

Pool::~Pool() {
  stop_.store(1, std::memory_order_relaxed);
  job_.fetch_add(1, std::memory_order_release);
  wake(job_);
  workers_->threads.clear();
}

std::shared_ptr<Pool> shared_pool(size_t threads) {
  static std::mutex mutex;
  static std::map<size_t, std::weak_ptr<Pool>> pools;
  if (threads == 0) threads = usable_cores();
  const std::scoped_lock lock(mutex);
  std::shared_ptr<Pool> pool = pools[threads].lock();
  if (pool == nullptr) pools[threads] = pool = std::make_shared<Pool>(threads);
  return pool;
}

}  // namespace pteryx::cpu
