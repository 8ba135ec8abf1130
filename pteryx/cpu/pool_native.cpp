// Threads that share loops.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include <hwy/cache_control.h>

#include "pteryx/cpu/pool.h"

namespace pteryx::cpu {
namespace {

// About 20 us: longer than the gaps between the layers of a model, shorter than anyone notices.
constexpr int kSpins = 1000;

// Waits until the value is no longer `old`; sleeps after a while.
uint32_t await_change(const std::atomic<uint32_t>& value, uint32_t old) {
  for (int i = 0; i < kSpins; ++i) {
    const uint32_t now = value.load(std::memory_order_acquire);
    if (now != old) return now;
    hwy::Pause();
  }
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

}  // namespace

struct Pool::Workers {
  std::vector<std::thread> threads;
};

Pool::Pool(size_t threads)
    : threads_(std::max<size_t>(threads, 1)), workers_(std::make_unique<Workers>()) {
  for (size_t i = 1; i < threads_; ++i) workers_->threads.emplace_back([this, i] { work(i); });
}

Pool::~Pool() {
  stop_.store(1, std::memory_order_relaxed);
  job_.fetch_add(1, std::memory_order_release);
  job_.notify_all();
  for (std::thread& worker : workers_->threads) worker.join();
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

void Pool::work(size_t thread) {
  uint32_t seen = 0;
  while (true) {
    seen = await_change(job_, seen);
    if (stop_.load(std::memory_order_relaxed) != 0) return;
    take_items(seen, thread);
  }
}

void Pool::take_items(uint32_t job, size_t thread) {
  uint64_t open = open_.load(std::memory_order_acquire);
  while (static_cast<uint32_t>(open >> 32U) == job && static_cast<uint32_t>(open) != 0) {
    // These belong to `job` if the exchange succeeds: an item of it was left until then, and they
    // only change when none is.
    const Function function = function_.load(std::memory_order_relaxed);
    void* body = body_.load(std::memory_order_relaxed);
    const uint32_t count = count_.load(std::memory_order_relaxed);
    if (!open_.compare_exchange_weak(open, open - 1, std::memory_order_acq_rel,
                                     std::memory_order_acquire)) {
      continue;
    }
    function(body, count - static_cast<uint32_t>(open), thread);
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_all();
    open = open_.load(std::memory_order_acquire);
  }
}

void Pool::run_erased(size_t count, Function function, void* body) {
  if (count < 2 || threads_ == 1 || busy_.test_and_set(std::memory_order_acquire)) {
    for (size_t item = 0; item < count; ++item) function(body, item, 0);
    return;
  }
  const uint32_t job = job_.load(std::memory_order_relaxed) + 1;
  function_.store(function, std::memory_order_relaxed);
  body_.store(body, std::memory_order_relaxed);
  count_.store(static_cast<uint32_t>(count), std::memory_order_relaxed);
  unfinished_.store(static_cast<uint32_t>(count), std::memory_order_relaxed);
  open_.store(uint64_t{job} << 32U | count, std::memory_order_release);
  job_.store(job, std::memory_order_release);
  job_.notify_all();
  take_items(job, 0);
  uint32_t left = unfinished_.load(std::memory_order_acquire);
  while (left != 0) left = await_change(unfinished_, left);
  busy_.clear(std::memory_order_release);
}

}  // namespace pteryx::cpu
