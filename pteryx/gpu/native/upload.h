// Memory that weights go through on their way to the GPU.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "pteryx/base/bytes.h"
#include "pteryx/gpu/native/functions.h"
#include "pteryx/gpu/native/handle.h"

namespace pteryx::gpu::native {

// A few buffers that the host maps and the GPU copies from, used in turn: what the library has for
// writes is made anew for every large one, which takes longer than copying it.
struct UploadSlot {
  enum class State : uint8_t { kNone, kMapped, kBusy, kFailed };
  BufferHandle buffer;
  State state = State::kNone;
  WGPUFuture future = {};
  std::string error;
};
inline constexpr uint64_t kUploadBytes = uint64_t{16} << 20;  // of each
inline constexpr uint64_t kDirectBytes = uint64_t{1} << 20;   // up to that the library's will do
using UploadSlots = std::array<UploadSlot, 4>;

}  // namespace pteryx::gpu::native
