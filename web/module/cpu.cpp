// The CPU as a device, in the modules that have kernels for it. SPDX-License-Identifier:
// BSD-3-Clause
#include "module.h"

#include "pteryx/gpu/cpu_device.h"

using namespace pteryx::web;  // NOLINT: all here is exports

PTERYX_EXPORT(device_open_cpu) int32_t export_device_open_cpu() {
  return give(add_device(pteryx::gpu::cpu_device()));
}
