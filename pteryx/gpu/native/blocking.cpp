// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/native/blocking.h"

#include <chrono>
#include <thread>

namespace pteryx::gpu {

// Most waits are short, so it spins a little first; then the library may block, in slices, so that
// what it does not tell is noticed too.
Status wait_until(Device& device, const std::function<Result<bool>()>& ask) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds kSpin(200);
  constexpr std::chrono::nanoseconds kSlice = std::chrono::microseconds(500);
  Clock::time_point spin_until = {};
  for (;;) {
    PTERYX_ASSIGN(const bool done, ask());
    if (done) return {};
    const Clock::time_point now = Clock::now();
    if (spin_until == Clock::time_point()) spin_until = now + kSpin;
    if (now < spin_until) {
      std::this_thread::yield();
    } else {
      device.idle(static_cast<uint64_t>(kSlice.count()));
    }
  }
}

Status wait(Device& device, Ticket ticket) {
  return wait_until(device, [&] { return device.done(ticket); });
}

}  // namespace pteryx::gpu
