// A call that picks elements by an index, as numbers. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "pteryx/ops/index_bound.h"
#include "pteryx/ops/op.h"

namespace pteryx::ops {

// y[c] = x[sum of c_d * x_strides_d + index[sum of c_d * index_strides_d] * step]
struct Pick {
  Tensor x;
  Tensor index;
  IndexArg at;  // what `index` is
  Dims dims;
  Dims x_strides;
  Dims index_strides;
  int64_t step = 0;
  int64_t extent = 0;
};
// With threads, where rows of x stay together.
Result<bool> pick_fast(const Node& n, const Pick& pick, const Host& h, CpuContext& c);

}  // namespace pteryx::ops
