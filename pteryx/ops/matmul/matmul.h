// Matrix products: one description for mm, bmm, addmm, baddbmm and linear, and the routes that
// compute it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "pteryx/ops/op.h"

namespace pteryx::ops {

// A matrix for each batch inside a tensor; strides in elements.
struct Matrix {
  Tensor tensor;
  int64_t batch = 0;
  int64_t row = 0;
  int64_t column = 0;
};

// What becomes of a sum, by the names that operators and kernels have for it.
enum class Activation : uint8_t { kNone, kRelu, kSilu, kGelu, kGeluTanh };
inline constexpr std::array<std::string_view, 5> kActivationNames = {"none", "relu", "silu", "gelu",
                                                                     "gelu_tanh"};

// y[batch, m, n] = activation(alpha * sum over k of a[batch, m, k] * b[batch, k, n] + beta *
// add[batch, m, n]) * scale[m, n] + residual[batch, m, n], y dense.
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
  Activation activation = Activation::kNone;
  std::optional<Matrix> scale;  // likewise, the same in every batch
  std::optional<Tensor> residual;
  Tensor y;

  // Nothing becomes of the sums.
  bool is_plain() const {
    return !add && alpha == 1 && activation == Activation::kNone && !scale && !residual;
  }
  // The sums as they are, for `parts` of k.
  MatMul unfinished(const Tensor& parts) const;

  // Columns of b, rather than rows, are contiguous: weights of linear layers.
  bool b_along_k() const { return b.row == 1; }
};

// "pteryx.dense": x, weight, bias?, activation?, scale?, residual?, transposed?, y, with
//   y = activation(x weight^T + bias) * scale + residual,
// scale having an entry for each column, or, transposed, the transpose [columns, rows] of that. A
// residual has the shape of y.
inline constexpr const char* kFusedLinear = "pteryx.dense";

Result<MatMul> describe_matmul(const Node& n);

// With vectors and threads: products of f32 or f16.
Result<bool> matmul_fast(const Node& n, const Host& h, CpuContext& c);

std::span<const Route> matmul_routes();

}  // namespace pteryx::ops
