// Makes a device fail on purpose.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pteryx/gpu/device.h"

namespace pteryx::gpu {

// The WebGPU library drops the device, as it does after a driver reset.
void lose(Device& device);

// The next create_buffer meets an out-of-memory error of the library. Only Dawn can pretend that.
void refuse_next_buffer(Device& device);

}  // namespace pteryx::gpu
