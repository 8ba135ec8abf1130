// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/constant.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "pteryx/base/advance_all.h"
#include "pteryx/base/order.h"
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
  std::vector<ByteRange> runs;
  std::vector<ByteRange> ordered = t.data;
  std::ranges::sort(ordered);
  for (const ByteRange& r : ordered) {
    ByteRange* const last = runs.empty() ? nullptr : &runs.back();
    const bool follows = last != nullptr && last->source == r.source &&
                         last->offset + last->size == r.offset &&
                         last->size % size_bytes(stored_) == 0;
    if (follows) {
      last->size += r.size;
    } else {
      runs.push_back(r);
    }
  }
  for (const ByteRange& r : t.data) {
    // The last that begins there or before: of those with its beginning, the largest.
    constexpr uint64_t kAnySize = std::numeric_limits<uint64_t>::max();
    const auto run = std::ranges::upper_bound(runs, ByteRange{r.source, r.offset, kAnySize}) - 1;
    parts_.push_back({static_cast<size_t>(run - runs.begin()), r.offset - run->offset, r.size});
  }
  for (const ByteRange& r : runs)
    fetched_.emplace_back(sources[r.source], r.offset, r.size, size_bytes(stored_));
}

Result<bool> ConstantBytes::advance() {
  if (there_) return true;
  PTERYX_ASSIGN(const bool all, advance_all(fetched_));
  if (!all) return false;
  bytes_ = part(parts_.front());
  there_ = true;
  if (parts_.size() > 1 && dim_order_.empty() && stored_ == dtype_) {
    for (const Part& p : parts_) apart_.push_back(part(p));
    return true;
  }
  if (parts_.size() > 1) join();
  if (!dim_order_.empty()) to_row_major();
  if (stored_ != dtype_) convert();
  return true;
}

uint64_t ConstantBytes::copied_bytes(const graph::Tensor& t, std::span<const SourcePtr> sources) {
  const DType stored = t.stored.value_or(t.dtype);
  uint64_t copied = 0;
  for (const ByteRange& r : t.data) {
    const auto lies = sources[r.source]->view(r.offset, r.size);
    const bool usable = lies && reinterpret_cast<uintptr_t>(lies->data()) % size_bytes(stored) == 0;
    if (!usable) copied += r.size;
  }
  if (t.dim_order.empty() && stored == t.dtype) return copied;
  return copied + static_cast<uint64_t>(numel(t.max)) * size_bytes(t.dtype);
}

uint64_t ByteCount::total() {
  const std::vector<uint32_t> order = sorted_places(
      ranges_.size(), [&](uint32_t a, uint32_t b) { return ranges_[a] < ranges_[b]; });
  uint64_t sum = 0;
  uint64_t end = 0;  // of what was counted of the source
  const ByteRange* before = nullptr;
  for (const uint32_t i : order) {
    const ByteRange& r = ranges_[i];
    if (before == nullptr || r.source != before->source) end = 0;
    before = &r;
    const uint64_t begin = std::max(r.offset, end);
    end = std::max(end, r.offset + r.size);
    sum += end - std::min(begin, end);
  }
  return sum;
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
  for (const Part& p : parts_) size += p.size;
  const MutableBytes out = memory_of(size, memory_);
  uint64_t at = 0;
  for (const Part& p : parts_) {
    if (p.size > 0) std::memcpy(&out[at], part(p).data(), p.size);
    at += p.size;
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

Result<std::vector<std::byte>> narrowed(const graph::Tensor& t, Bytes bytes, std::string_view label,
                                        int64_t first) {
  const ops::HostTensor wide{t.dtype, t.max, const_cast<std::byte*>(bytes.data())};
  std::vector<std::byte> narrow(bytes.size() / 2);
  const ops::HostTensor to{DType::kI32, t.max, narrow.data()};
  for (int64_t i = 0; i < wide.numel(); ++i) {
    if (!fits<int32_t>(wide.integer(i))) {
      return invalid_program(fmt::format("constant {}: element {} is {}, which does not fit i32",
                                         label, first + i, wide.integer(i)));
    }
    to.put_integer(i, wide.integer(i));
  }
  return narrow;
}

}  // namespace pteryx
