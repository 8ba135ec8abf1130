// Matrix products: one description for mm, bmm, addmm, baddbmm and linear, and the routes that
// compute it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <span>

#include "pteryx/ops/op.h"

namespace pteryx::ops {

// A matrix for each batch inside a tensor; strides in elements.
struct Matrix {
  Tensor tensor;
  int64_t batch = 0;
  int64_t row = 0;
  int64_t column = 0;
};

// y[batch, m, n] = alpha * sum over k of a[batch, m, k] * b[batch, k, n] + beta * add[batch, m, n],
// y dense.
struct MatMul {
  int64_t batches = 1;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  Matrix a;                   // rows m, columns k
  Matrix b;                   // rows k, columns n
  std::optional<Matrix> add;  // rows m, columns n; stride 0 repeats
  double alpha = 1;
  double beta = 1;
  Tensor y;

  // Columns of b, rather than rows, are contiguous: weights of linear layers.
  bool b_along_k() const { return b.row == 1; }
};

Result<MatMul> describe_matmul(const Node& n);

std::span<const Route> matmul_routes();

}  // namespace pteryx::ops
