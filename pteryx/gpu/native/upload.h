// Memory that weights go through on their way to the GPU.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "pteryx/gpu/native/functions.h"
#include "pteryx/gpu/native/handle.h"

namespace pteryx::gpu::native {

// A few buffers that the host maps and the GPU copies from, used in turn: what the library has for
// writes is made anew for every large one, which takes longer than copying it.
struct UploadSlot {
  enum class State : uint8_t { kNone, kMapped, kBusy, kFailed };
  // Bytes of it that wait to be copied.
  struct Part {
    WGPUBuffer to = nullptr;
    uint64_t offset = 0;  // there
    uint64_t from = 0;    // here
    uint64_t size = 0;
  };
  BufferHandle buffer;
  State state = State::kNone;
  std::byte* memory = nullptr;  // while it is filled
  uint64_t used = 0;
  std::vector<Part> parts;
  WGPUFuture future = {};
  std::string error;
};
inline constexpr uint64_t kUploadBytes = uint64_t{16} << 20;  // of each
inline constexpr uint64_t kDirectBytes = uint64_t{64} << 10;  // up to that the library's will do
using UploadSlots = std::array<UploadSlot, 4>;

}  // namespace pteryx::gpu::native
