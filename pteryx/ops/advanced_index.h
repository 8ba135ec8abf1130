// Indexing by a list of tensors, x[i0, :, i1]: which shape it gives, and the offsets of its
// elements on the host.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <vector>

#include "pteryx/ops/op.h"

namespace pteryx::ops {

// What the list of argument `list` says without looking into its tensors.
struct IndexList {
  size_t count = 0;     // tensors that are not None
  size_t first = 0;     // position of the first
  bool masked = false;  // some are bool: the shape depends on their contents
};
IndexList index_list(const Node& n, size_t list);
// Masks of the list stand for the positions of their true elements.
bool is_mask(DType t);
// The dim of x that a member of the list is for.
size_t indexed_dim(const Node& n, size_t list, size_t member);

// The result's dims for x of dims `x`; not for masks.
Result<Dims> indexed_dims(const Node& n, size_t list, const Dims& x);

// The indices read: one flat vector per indexed dim of x, masks turned into the positions of their
// true elements.
struct HostIndex {
  Dims dims;  // of the indexed elements x[...]
  std::array<Dims, kMaxRank + 1>
      strides;  // over dims: into x without its indexed dims, then into each vector
  std::array<std::vector<int64_t>, kMaxRank> at;  // already times x's stride

  int64_t offset(const std::array<int64_t, kMaxRank + 1>& walk) const {
    int64_t o = walk[0];
    for (size_t k = 0; k < kMaxRank; ++k) {
      if (!at[k].empty()) o += at[k][static_cast<size_t>(walk[k + 1])];
    }
    return o;
  }
};
Result<HostIndex> read_index(const Node& n, size_t list, const Dims& x, const Host& h);

}  // namespace pteryx::ops
