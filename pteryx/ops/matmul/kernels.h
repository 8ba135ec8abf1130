// What the kernels of matrix products share: params, options and bindings of their operands.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>
#include <vector>

#include "pteryx/ops/matmul/matmul.h"
#include "pteryx/ops/shaders/matmul_naive.h"

namespace pteryx::ops::matmul {

using Params = shaders::MatmulNaiveParams;  // all kernels include one
Params make_params(const MatMul& d);

// Four or eight neighbours of an operand are one load: every group of them starts at a multiple of
// so many, and there is one. Neighbours of `a` are along k, of b along k or n.
bool a_in(const MatMul& d, int64_t neighbours);
bool b_in(const MatMul& d, int64_t neighbours);

// Options and bindings of matmul/common/: a.wgsl, b.wgsl and put.wgsl.
enum class Loads : uint8_t { kFours, kEights };  // at most
struct Operands {
  Options options;
  std::vector<Bind> bind;

  Operands& add_a(const MatMul& d);
  Operands& add_b(const MatMul& d, Loads most);
  // What epilogue.wgsl reads.
  Operands& add_slots(const MatMul& d);
  // y, with those.
  Operands& add_y(const MatMul& d);
};

// Adds up the parts of a product whose k was cut: `parts` is [splits, batches, m, n], m
// and n up to multiples of fill_m and fill_n.
Status plan_merge(const Node& n, Plan& p, const MatMul& d, const Tensor& parts, int64_t splits,
                  int64_t fill_m, int64_t fill_n);

inline int64_t up(int64_t n, int64_t step) { return (n + step - 1) / step; }

}  // namespace pteryx::ops::matmul
