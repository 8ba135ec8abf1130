// Folding rows across invocations: what reductions, softmax, norms and matrix-vector products have
// in common. A team of neighbouring invocations works on one row; a workgroup holds one or more
// teams.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

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
  // Constants `team` and `wg_size` and the function `fold`, for shaders that define `acc` and
  // `combine`.
  std::string prelude() const;
};

// A team for rows of `length` items: few sizes, so that few pipelines serve all lengths.
Fold make_fold(FoldRoute route, int64_t length, uint32_t max_team, const gpu::Caps& caps);

// How many steps of `lanes` items an invocation takes to cover its share of `length`, rounded up to
// one of a few numbers; 0 where that is too much to keep in registers.
uint32_t held_steps(const Fold& f, int64_t length, uint32_t lanes);

bool fits_subgroup_fold(const Node& n, const gpu::Caps& caps);

// How rows of y are written: whole words where every row starts and ends with one, else element by
// element. Either way the shader sees `y_lanes` and `encode_y`, and owns y[w] for every w.
Access row_access(DType y, int64_t row_length);
uint32_t row_lanes(Access access, DType y);
std::string_view row_access_prelude(Access access);

}  // namespace pteryx::ops
