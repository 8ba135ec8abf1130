// Sharing out a loop: the same wherever threads come from. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/pool.h"

#include <algorithm>
#include <limits>

#include <hwy/cache_control.h>

namespace pteryx::cpu {

// Waits until the value is no longer `old`; sleeps after a while.
uint32_t Pool::await_change(const std::atomic<uint32_t>& value, uint32_t old, size_t thread) {
  for (int i = 0; i < kSpins; ++i) {
    const uint32_t now = value.load(std::memory_order_acquire);
    if (now != old) return now;
    hwy::Pause();
  }
  sleep(value, old, thread);
  return value.load(std::memory_order_acquire);
}

void Pool::work(size_t thread) {
  uint32_t seen = 0;
  while (true) {
    seen = await_change(job_, seen, thread);
    if (stop_.load(std::memory_order_relaxed) != 0) return;
    take_items(seen, thread);
  }
}

void Pool::take_items(uint32_t job, size_t thread) {
  uint64_t open = open_.load(std::memory_order_acquire);
  while (static_cast<uint32_t>(open >> 32U) == job && static_cast<uint32_t>(open) != 0) {
    // Many while many are left, so that threads seldom meet here; one by one in the end, so that
    // none waits long for another.
    const auto left = static_cast<uint32_t>(open);
    const uint32_t taken = std::max(left / (2 * static_cast<uint32_t>(threads_)), 1U);
    // These belong to `job` if the exchange succeeds: an item of it was left until then, and they
    // only change when none is.
    const Function function = function_.load(std::memory_order_relaxed);
    void* body = body_.load(std::memory_order_relaxed);
    const uint32_t count = count_.load(std::memory_order_relaxed);
    if (!open_.compare_exchange_weak(open, open - taken, std::memory_order_acq_rel,
                                     std::memory_order_acquire)) {
      continue;
    }
    for (uint32_t i = 0; i < taken; ++i) function(body, count - left + i, thread);
    if (unfinished_.fetch_sub(taken, std::memory_order_acq_rel) == taken) wake(unfinished_);
    open = open_.load(std::memory_order_acquire);
  }
}

void Pool::run_erased(size_t count, Function function, void* body) {
  // Items are counted in 32 bits.
  const bool alone = count < 2 || threads_ == 1 || count > std::numeric_limits<uint32_t>::max();
  if (alone || busy_.test_and_set(std::memory_order_acquire)) {
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
  wake(job_);
  take_items(job, 0);
  uint32_t left = unfinished_.load(std::memory_order_acquire);
  while (left != 0) left = await_change(unfinished_, left, 0);
  busy_.clear(std::memory_order_release);
}

}  // namespace pteryx::cpu
