// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/constant.h"

#include <cstring>

#include <fmt/format.h>

#include "pteryx/base/advance_all.h"
#include "pteryx/ops/op.h"

namespace pteryx {

ConstantId::ConstantId(const graph::Tensor& t)
    : data(t.data), dtype(t.dtype), dim_order(t.dim_order) {
  if (!dim_order.empty()) dims.assign(t.max.begin(), t.max.end());
}

ConstantBytes::ConstantBytes(const graph::Tensor& t, std::span<const SourcePtr> sources)
    : dims_(t.max),
      element_bytes_(size_bytes(t.data_dtype.value_or(t.dtype))),
      dim_order_(t.dim_order) {
  parts_.reserve(t.data.size());
  for (const ByteRange& r : t.data)
    parts_.emplace_back(sources[r.source], r.offset, r.size, element_bytes_);
}

Result<bool> ConstantBytes::advance() {
  if (there_) return true;
  PTERYX_ASSIGN(const bool all, advance_all(parts_));
  if (!all) return false;
  bytes_ = parts_.front().bytes();
  if (parts_.size() > 1) join();
  if (!dim_order_.empty()) to_row_major();
  there_ = true;
  return true;
}

namespace {
MutableBytes memory_of(uint64_t size, std::vector<std::max_align_t>& memory) {
  memory.resize(div_up(size, sizeof(std::max_align_t)));
  return std::as_writable_bytes(std::span(memory)).first(size);
}
}  // namespace

void ConstantBytes::join() {
  uint64_t size = 0;
  for (const FetchedBytes& part : parts_) size += part.bytes().size();
  const MutableBytes out = memory_of(size, memory_);
  uint64_t at = 0;
  for (const FetchedBytes& part : parts_) {
    if (part.bytes().empty()) continue;
    std::memcpy(&out[at], part.bytes().data(), part.bytes().size());
    at += part.bytes().size();
  }
  bytes_ = out;
}

void ConstantBytes::to_row_major() {
  std::vector<std::max_align_t> ordered;
  const MutableBytes out = memory_of(bytes_.size(), ordered);
  const Dims from = strides_for_order(dims_, dim_order_);
  const Dims to = contiguous_strides(dims_);
  const int64_t n = numel(dims_);
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = 0;
    for (size_t d = 0; d < dims_.rank(); ++d) at += i / to[d] % dims_[d] * from[d];
    std::memcpy(&out[static_cast<size_t>(i) * element_bytes_],
                &bytes_[static_cast<size_t>(at) * element_bytes_], element_bytes_);
  }
  memory_ = std::move(ordered);
  bytes_ = out;
}

Result<std::vector<std::byte>> narrowed(const graph::Tensor& t, Bytes bytes,
                                        std::string_view label) {
  const ops::HostTensor wide{t.dtype, t.max, const_cast<std::byte*>(bytes.data())};
  std::vector<std::byte> narrow(bytes.size() / 2);
  const ops::HostTensor to{DType::kI32, t.max, narrow.data()};
  for (int64_t i = 0; i < wide.numel(); ++i) {
    if (!fits<int32_t>(wide.integer(i))) {
      return invalid_program(fmt::format("constant {}: element {} is {}, which does not fit i32",
                                         label, i, wide.integer(i)));
    }
    to.put_integer(i, wide.integer(i));
  }
  return narrow;
}

std::vector<std::byte> converted(const graph::Tensor& t, Bytes bytes) {
  const ops::HostTensor from{*t.data_dtype, t.max, const_cast<std::byte*>(bytes.data())};
  std::vector<std::byte> other(static_cast<size_t>(from.numel()) * size_bytes(t.dtype));
  const ops::HostTensor to{t.dtype, t.max, other.data()};
  // Caches are large and zero in every float type: equal to themselves one byte further on.
  const bool zero = bytes.empty() || (bytes[0] == std::byte{0} &&
                                      std::memcmp(&bytes[0], &bytes[0] + 1, bytes.size() - 1) == 0);
  for (int64_t i = 0; !zero && i < from.numel(); ++i) to.copy(i, from, i);
  return other;
}

}  // namespace pteryx
