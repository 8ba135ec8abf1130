// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/fuse/constants.h"

#include <algorithm>

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about
namespace {

// Bytes [begin, begin + size) of ranges that lie one behind the other.
void append(std::vector<ByteRange>& to, const std::vector<ByteRange>& from, uint64_t begin,
            uint64_t size) {
  for (const ByteRange& r : from) {
    if (size == 0) return;
    if (begin >= r.size) {
      begin -= r.size;
      continue;
    }
    const uint64_t here = std::min(size, r.size - begin);
    to.push_back(*slice(r, begin, here));
    begin = 0;
    size -= here;
  }
}

}  // namespace

bool is_held_by_gpu(DType t) {
  switch (t) {
    case DType::kBool:
    case DType::kU8:
    case DType::kI8:
    case DType::kI32:
    case DType::kF16:
    case DType::kF32: return true;
    default: return false;
  }
}

std::optional<Tensor> constant_part(const Tensor& t, const PartOf& part) {
  constexpr uint64_t kMostRanges = 1U << 20;
  const Dims dims = part.as.value_or(t.max);
  if (part.as && !t.dim_order.empty()) return std::nullopt;
  Tensor result{.dtype = t.dtype, .max = dims};
  result.max[part.dim] = part.count;
  result.dim_order = t.dim_order;
  result.stored = t.stored;
  // In the order of the bytes: how often the dim is walked through, and how large a step along it
  // is.
  uint64_t walks = 1;
  uint64_t step = size_bytes(t.stored.value_or(t.dtype));
  bool outside = true;
  for (size_t i = 0; i < dims.rank(); ++i) {
    const size_t d = t.dim_order.empty() ? i : t.dim_order[i];
    if (d == part.dim) {
      outside = false;
    } else {
      (outside ? walks : step) *= static_cast<uint64_t>(dims[d]);
    }
  }
  if (walks * t.data.size() > kMostRanges) return std::nullopt;
  const uint64_t walk = static_cast<uint64_t>(dims[part.dim]) * step;
  for (uint64_t w = 0; w < walks; ++w) {
    append(result.data, t.data, w * walk + static_cast<uint64_t>(part.first) * step,
           static_cast<uint64_t>(part.count) * step);
  }
  return result;
}

std::optional<Tensor> joined_constant(std::span<const JoinedPart> parts, size_t dim) {
  const Tensor& first = *parts.front().tensor;
  Tensor result{.dtype = first.dtype, .max = first.max};
  result.max[dim] = 0;
  uint64_t walks = 1;
  uint64_t step = size_bytes(first.dtype);
  for (size_t d = 0; d < first.max.rank(); ++d) {
    if (d != dim) (d < dim ? walks : step) *= static_cast<uint64_t>(first.max[d]);
  }
  for (const JoinedPart& p : parts) {
    if (!p.tensor->dim_order.empty() || p.tensor->stored || p.tensor->dtype != first.dtype)
      return std::nullopt;
    result.max[dim] += p.count;
  }
  for (uint64_t w = 0; w < walks; ++w) {
    for (const JoinedPart& p : parts) {
      const uint64_t walk = static_cast<uint64_t>(p.tensor->max[dim]) * step;
      append(result.data, p.tensor->data, w * walk, static_cast<uint64_t>(p.count) * step);
    }
  }
  return result;
}

}  // namespace pteryx::fuse
