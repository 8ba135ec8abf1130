// The one loop that waits. Nothing that runs in a page includes this.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

#include "pteryx/base/status.h"
#include "pteryx/gpu/device.h"

namespace pteryx::gpu {

// Asks until the answer is true, or an error.
Status wait_until(Device& device, const std::function<Result<bool>()>& ask);

Status wait(Device& device, Ticket ticket);

template <typename Id>
Status settle(Device& device, Id id) {
  return wait_until(device, [&] { return device.settled(id); });
}
// The same object, once it is there.
template <typename Id>
Result<Id> wait_for(Device& device, Id id) {
  PTERYX_TRY(settle(device, id));
  return id;
}

// A job to its end.
template <typename Job>
Status finish(Device& device, Job& job) {
  return wait_until(device, [&] { return job.advance(); });
}

}  // namespace pteryx::gpu
