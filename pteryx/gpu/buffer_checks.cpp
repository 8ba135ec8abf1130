// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/buffer_checks.h"

#include <fmt/format.h>

#include "pteryx/base/checked.h"

namespace pteryx::gpu {

Status check_write(const CheckedBuffer& b, uint64_t offset, uint64_t size) {
  if (offset % 4 != 0 || !in_range(offset, align_up(size, 4), b.size)) {
    return invalid_argument(fmt::format("write of {} bytes at {} does not fit buffer '{}' of {}",
                                        size, offset, b.label, b.size));
  }
  if (b.reading)
    return invalid_argument(fmt::format("write to buffer '{}' while it is read", b.label));
  return {};
}

Status check_copy(const Copy& c, const CheckedBuffer& src, const CheckedBuffer& dst) {
  const bool aligned = c.src_offset % 4 == 0 && c.dst_offset % 4 == 0 && c.size % 4 == 0;
  if (!aligned || !in_range(c.src_offset, c.size, src.size) ||
      !in_range(c.dst_offset, c.size, dst.size)) {
    return invalid_argument(
        fmt::format("copy of {} bytes from {} of '{}' ({} bytes) to {} of '{}' ({} bytes): out of "
                    "range or not a multiple of 4",
                    c.size, c.src_offset, src.label, src.size, c.dst_offset, dst.label, dst.size));
  }
  if (src.kind != BufferKind::kStorage || c.src == c.dst) {
    return invalid_argument(
        fmt::format("copy from '{}' to '{}': the source must be another buffer, of kind storage",
                    src.label, dst.label));
  }
  if (dst.reading)
    return invalid_argument(fmt::format("copy to buffer '{}' while it is read", dst.label));
  return {};
}

Status check_read(const CheckedBuffer& b, uint64_t offset, uint64_t size) {
  if (b.kind != BufferKind::kReadback || b.reading) {
    return invalid_argument(fmt::format("buffer '{}' {}", b.label,
                                        b.kind != BufferKind::kReadback
                                            ? "is not of kind readback, so it cannot be read"
                                            : "is being read already"));
  }
  if (!in_range(offset, size, b.size)) {
    return invalid_argument(fmt::format("read of {} bytes at {} does not fit buffer '{}' of {}",
                                        size, offset, b.label, b.size));
  }
  return {};
}

}  // namespace pteryx::gpu
