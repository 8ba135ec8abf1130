// Learns by trying what a provider does not tell about its device.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

#include "pteryx/base/status.h"
#include "pteryx/gpu/native/native_device.h"

namespace pteryx::gpu::native {

// Completes the caps of a fresh device: the subgroup size and dot4I8Packed with wgpu-native,
// nothing with Dawn. `disable` is the list of masked capabilities. Leaves the counters at zero.
// Errors: those of the device.
Status probe(NativeDevice& device, std::string_view disable);

}  // namespace pteryx::gpu::native
