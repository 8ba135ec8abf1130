// What every device refuses to do with a buffer. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pteryx/base/status.h"
#include "pteryx/gpu/device.h"

namespace pteryx::gpu {

struct CheckedBuffer {
  std::string_view label;
  uint64_t size = 0;
  BufferKind kind = BufferKind::kStorage;
  bool reading = false;  // a read of it is not released yet
};

// Errors: kInvalidArgument.
Status check_write(const CheckedBuffer& b, uint64_t offset, uint64_t size);
Status check_copy(const Copy& c, const CheckedBuffer& src, const CheckedBuffer& dst);
Status check_read(const CheckedBuffer& b, uint64_t offset, uint64_t size);

inline Status not_on_this_device(std::string_view what) {
  return invalid_argument(std::string(what) + " is not on this device");
}
// The error that an object failed with, for one more who uses it.
inline Status again(const Status& s) { return {s.code(), std::string(s.message())}; }

}  // namespace pteryx::gpu
