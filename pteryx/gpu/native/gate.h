// The lock of a device.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <mutex>

namespace pteryx::gpu::native {

// A mutex that says whether another thread is waiting for it.
class Gate {
 public:
  void lock() {
    if (mutex_.try_lock()) return;
    wanted_.fetch_add(1, std::memory_order_relaxed);
    mutex_.lock();
    wanted_.fetch_sub(1, std::memory_order_relaxed);
  }
  void unlock() { mutex_.unlock(); }
  bool wanted() const { return wanted_.load(std::memory_order_relaxed) != 0; }

 private:
  std::mutex mutex_;
  std::atomic<int> wanted_ = 0;
};
using Lock = std::lock_guard<Gate>;

}  // namespace pteryx::gpu::native
