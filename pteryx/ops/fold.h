// Folding rows across invocations: what reductions, softmax, norms and matrix-vector products have
// in common. A team of neighbouring invocations works on one row; a workgroup holds one or more
// teams.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "pteryx/ops/op.h"

namespace pteryx::ops {

enum class FoldRoute : uint8_t { kSerial, kTree, kSubgroup };

struct Fold {
  uint32_t team = 1;        // invocations per row, a power of two
  uint32_t workgroup = 64;  // invocations per workgroup
  uint32_t block = 0;       // neighbouring invocations that shuffle with each other; 0: none do

  // Workgroups for n rows.
  gpu::Grid grid(int64_t n, const gpu::Caps& caps) const {
    return per_group(static_cast<int64_t>(div_up(static_cast<uint64_t>(n), workgroup / team)),
                     caps);
  }
  // Of common/fold.wgsl: team, wg_size and block.
  Options options() const;
};

// A team for rows of `length` items: few sizes, so that few pipelines serve all lengths.
Fold make_fold(FoldRoute route, int64_t length, uint32_t max_team, const gpu::Caps& caps);

// How many steps of `lanes` items an invocation takes to cover its share of `length`, rounded up to
// one of a few numbers; 0 where that is too much to keep in registers.
uint32_t held_steps(const Fold& f, int64_t length, uint32_t lanes);

bool has_subgroup_fold(const gpu::Caps& caps);
bool fits_subgroup_fold(const Node& n, const gpu::Caps& caps);

// Whether rows of y are written in whole words, as every row starts and ends with one, or element
// by element: `row_words` of common/row_words.wgsl.
bool in_row_words(DType y, int64_t row_length);
// Elements that are written at once.
uint32_t row_lanes(bool row_words, DType y);

}  // namespace pteryx::ops
