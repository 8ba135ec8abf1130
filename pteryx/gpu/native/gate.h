// The lock of a device, and how to wait behind it without shutting others out.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>

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

// Calls step(timeout_ns) with the gate locked until it returns true. Neither library can wait for
// the GPU and take other calls meanwhile, so: spin a little, since most waits are short; then let
// the library block, in slices; and only look in now and then while another thread uses the device,
// or if the library cannot block for a limited time.
template <typename Step>
void wait_behind(Gate& gate, bool can_block, Step step) {
  using Clock = std::chrono::steady_clock;
  using namespace std::chrono_literals;  // NOLINT: the only way to write 200us
  constexpr auto kSpin = 200us;
  constexpr auto kShared = 2ms;  // how long another thread's call makes us step back
  constexpr auto kNap = 50us;
  constexpr std::chrono::nanoseconds kSlice = 500us;

  const Clock::time_point spin_until = Clock::now() + kSpin;
  Clock::time_point step_back_until = {};
  for (;;) {
    const Clock::time_point now = Clock::now();
    const bool spin = now < spin_until;
    const bool look_in = !can_block || now < step_back_until;
    {
      const Lock lock(gate);
      if (step(spin || look_in ? uint64_t{0} : static_cast<uint64_t>(kSlice.count()))) return;
    }
    if (gate.wanted()) step_back_until = Clock::now() + kShared;
    if (spin) {
      std::this_thread::yield();
    } else if (look_in || gate.wanted()) {
      std::this_thread::sleep_for(kNap);
    }
  }
}

}  // namespace pteryx::gpu::native
