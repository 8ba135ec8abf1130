// Constants of a graph, for passes.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "pteryx/base/checked.h"
#include "pteryx/graph/graph.h"

namespace pteryx::fuse {

using graph::Tensor;

// Element types that GPU buffers hold as they are.
bool is_held_by_gpu(DType t);

// Bytes of a row of a weight as kernels may want it.
constexpr uint64_t padded_row(uint64_t bytes) { return align_up(bytes, 16); }

// A range of a constant along one of its dims.
struct PartOf {
  size_t dim = 0;
  int64_t first = 0;
  int64_t count = 0;
  std::optional<Dims> as = {};  // the constant seen with other dims, of as many elements
};
// The constant that holds that range: other ranges of the same bytes. Nullopt where bytes in
// another order than the dims' would have to be seen with other dims, and where the range is
// scattered over more places than can be kept.
std::optional<Tensor> constant_part(const Tensor& t, const PartOf& part);

// Constants of one type, one behind the other along a dim: the first count[i] of part i there.
// Nullopt where bytes are in another order than the dims' or of another type than the elements.
struct JoinedPart {
  const Tensor* tensor = nullptr;
  int64_t count = 0;
};
std::optional<Tensor> joined_constant(std::span<const JoinedPart> parts, size_t dim);

}  // namespace pteryx::fuse
