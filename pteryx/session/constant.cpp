// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/constant.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "pteryx/base/advance_all.h"
#include "pteryx/ops/op.h"

namespace pteryx {

// Equal to themselves one byte further on.
bool is_zero(Bytes bytes) {
  return bytes.empty() || (bytes[0] == std::byte{0} &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

ConstantId::ConstantId(const graph::Tensor& t)
    : data(t.data), dtype(t.dtype), stored(t.stored.value_or(t.dtype)), dim_order(t.dim_order) {
  if (!dim_order.empty()) dims.assign(t.max.begin(), t.max.end());
}

ConstantBytes::ConstantBytes(const graph::Tensor& t, std::span<const SourcePtr> sources)
    : dims_(t.max), stored_(t.stored.value_or(t.dtype)), dtype_(t.dtype), dim_order_(t.dim_order) {
  parts_.reserve(t.data.size());
  for (const ByteRange& r : t.data)
    parts_.emplace_back(sources[r.source], r.offset, r.size, size_bytes(stored_));
}

Result<bool> ConstantBytes::advance() {
  if (there_) return true;
  PTERYX_ASSIGN(const bool all, advance_all(parts_));
  if (!all) return false;
  bytes_ = parts_.front().bytes();
  there_ = true;
  if (parts_.size() > 1 && dim_order_.empty() && stored_ == dtype_) {
    for (const FetchedBytes& part : parts_) apart_.push_back(part.bytes());
    return true;
  }
  if (parts_.size() > 1) join();
  if (!dim_order_.empty()) to_row_major();
  if (stored_ != dtype_) convert();
  return true;
}

Bytes ConstantBytes::bytes() {
  if (!apart_.empty() && memory_.empty()) join();
  return bytes_;
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
  const size_t element = size_bytes(stored_);
  const int64_t n = numel(dims_);
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = 0;
    for (size_t d = 0; d < dims_.rank(); ++d) at += i / to[d] % dims_[d] * from[d];
    std::memcpy(&out[static_cast<size_t>(i) * element], &bytes_[static_cast<size_t>(at) * element],
                element);
  }
  memory_ = std::move(ordered);
  bytes_ = out;
}

void ConstantBytes::convert() {
  const ops::HostTensor from{stored_, dims_, const_cast<std::byte*>(bytes_.data())};
  std::vector<std::max_align_t> converted;
  const MutableBytes out =
      memory_of(static_cast<uint64_t>(from.numel()) * size_bytes(dtype_), converted);
  const ops::HostTensor to{dtype_, dims_, out.data()};
  if (is_zero(bytes_)) {  // in every type alike; caches are large
    std::ranges::fill(out, std::byte{0});
  } else {
    for (int64_t i = 0; i < from.numel(); ++i) to.copy(i, from, i);
  }
  memory_ = std::move(converted);
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

}  // namespace pteryx
