// WebGPU libraries that are installed and cannot be used. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "pteryx/gpu/device.h"

namespace pteryx::gpu {

// Of those that the options would look at: which are there and cannot be opened, and why, a line
// each;
// "" where there is none.
std::string broken_libraries(const DeviceOptions& options);

}  // namespace pteryx::gpu
