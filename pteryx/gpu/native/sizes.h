// How large a GPU is: measured, kept in a file, or what is usual for its kind.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pteryx/base/status.h"
#include "pteryx/gpu/device.h"

namespace pteryx::gpu {

enum class AdapterKind : uint8_t { kDiscrete, kIntegrated, kSoftware, kUnknown };
// For a GPU that was never measured.
Sizes usual_sizes(AdapterKind kind, std::string_view adapter);

// Works the GPU and waits for it, for a second or two. Errors: kDevice, kMemory.
Result<Sizes> measure_sizes(Device& device);

// A file of a folder has sizes by the names of adapters. One that is missing or makes no sense has
// none: devices open all the same.
std::optional<Sizes> kept_sizes(const std::string& folder, std::string_view adapter);
// The path that they are kept at. Makes the folder. Errors: kIo.
Result<std::string> keep_sizes(const std::string& folder, std::string_view adapter,
                               const Sizes& sizes);
// Whether there were any. Errors: kIo.
Result<bool> forget_sizes(const std::string& folder, std::string_view adapter);

}  // namespace pteryx::gpu
