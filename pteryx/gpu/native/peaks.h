// What an adapter reaches by itself, for comparisons. Waits for it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pteryx/base/status.h"
#include "pteryx/gpu/device.h"

namespace pteryx::gpu {

struct Peaks {
  double bytes_per_s = 0;  // read and written by a plain copy of more than caches hold
  double flops_per_s = 0;  // f32 multiply-adds from registers, two operations each
};

// In well under a second. Errors: kDevice, kMemory.
Result<Peaks> measure_peaks(Device& device);

// Works the GPU for that long: clocks fall while it waits, and rise slowly.
Status keep_busy(Device& device, double seconds);

}  // namespace pteryx::gpu
