// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/source.h"

#include <fmt/format.h>

#include "pteryx/base/checked.h"

namespace pteryx::convert {

Bytes SourceTensor::row(int64_t r) const {
  const SourceFormat& f = format(type);
  const uint64_t row_bytes = static_cast<uint64_t>(cols()) / f.block_elems * f.block_bytes;
  return data.subspan(static_cast<uint64_t>(r) * row_bytes, row_bytes);
}

void SourceTensor::read_row(int64_t r, std::span<float> out) const {
  const SourceFormat& f = format(type);
  const std::byte* block = row(r).data();
  for (size_t i = 0; i < out.size(); i += f.block_elems, block += f.block_bytes) {
    f.decode(block, out.data() + i);
  }
}

std::optional<uint64_t> data_bytes(SourceType type, std::span<const int64_t> dims) {
  const SourceFormat& f = format(type);
  const auto count = checked_numel(dims, f.block_bytes);
  if (!count) return std::nullopt;
  if (!dims.empty() && dims.back() % f.block_elems != 0) return std::nullopt;
  return static_cast<uint64_t>(*count) / f.block_elems * f.block_bytes;
}

const SourceTensor* Checkpoint::find(std::string_view tensor) const {
  const auto at = tensors.find(tensor);
  return at == tensors.end() ? nullptr : &at->second;
}

Result<const SourceTensor*> Checkpoint::get(std::string_view tensor, const Dims& dims) const {
  const SourceTensor* t = find(tensor);
  if (t != nullptr) {
    if (t->dims == dims) return t;
    return invalid_program(fmt::format("tensor '{}' shape: expected {}, got {}", tensor,
                                       to_string(dims), to_string(t->dims)));
  }
  if (const auto at = unreadable.find(tensor); at != unreadable.end()) {
    return unsupported(fmt::format("tensor '{}' has elements of type {}", tensor, at->second));
  }
  return invalid_program(fmt::format("tensor '{}' {} is missing", tensor, to_string(dims)));
}

}  // namespace pteryx::convert
