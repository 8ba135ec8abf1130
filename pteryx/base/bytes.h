// Byte spans, and a reader that cannot leave its bounds.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

#include "pteryx/base/checked.h"

namespace pteryx {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

// A little-endian scalar at a byte offset; nullopt if it is not wholly inside.
template <typename T>
  requires std::is_trivially_copyable_v<T>
std::optional<T> read_at(Bytes bytes, uint64_t offset) {
  if (!in_range(offset, sizeof(T), bytes.size())) return std::nullopt;
  T v;
  std::memcpy(&v, bytes.data() + offset, sizeof(T));
  return v;
}

// Sub-range, nullopt if it is not wholly inside.
inline std::optional<Bytes> slice(Bytes bytes, uint64_t offset, uint64_t size) {
  if (!in_range(offset, size, bytes.size())) return std::nullopt;
  return bytes.subspan(offset, size);
}

template <typename T>
Bytes bytes_of(const T& v)
  requires std::is_trivially_copyable_v<T>
{
  return std::as_bytes(std::span(&v, 1));
}

}  // namespace pteryx
