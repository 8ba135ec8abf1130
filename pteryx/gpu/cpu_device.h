// A device for machines without a GPU, and for those who want none: buffers in host memory, no
// shaders. Sessions run every node on its CPU kernel where they find Caps::cpu.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>

#include "pteryx/gpu/device.h"

namespace pteryx::gpu {

// Nothing can go wrong and nothing is opened. What is written, copied and read is there at once,
// but for bytes of a source that are on their way. Pipelines, bindings and dispatches are
// kUnsupported.
std::shared_ptr<Device> cpu_device();

// What the system calls the processor; "CPU" where it does not tell.
std::string cpu_name();

}  // namespace pteryx::gpu
