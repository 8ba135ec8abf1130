// Linear layers with quantised weights, and all that passes make: one description for all of them,
// and the routes that compute it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "pteryx/ops/op.h"

namespace pteryx::ops {

enum class Codes : uint8_t {
  kLowFirst,   // 4 bits offset by 8, two in a byte, even k in the low nibble
  kHighFirst,  // the same with even k in the high nibble
  kBytes,      // 8 bits, signed
  kNone,       // the weights themselves; no scales
};

enum class ScaleOrder : uint8_t {
  kFlat,    // [n]: one for each row of weight
  kGroups,  // [k / group, n]
  kBlocks,  // [n / 8, k / group, 8]
};

// For a layer whose columns are queries, keys and values: pairs of queries and keys are turned by
// cos and sin of their position, keys and values go to caches [1, capacity, heads, size].
struct Rotation {
  bool halves = false;  // pairs are half a head apart, else neighbours
  Tensor cos;           // [positions, size / 2], of halves [positions, size]
  Tensor sin;
  LiveInt table_start;  // the row of cos and sin for the first row of x
  Tensor keys;
  Tensor values;
  LiveInt position;  // the row of the caches for the first row of x
  // Where set, each head of queries and keys is first divided by its RMS (with eps), and multiplied
  // by these.
  std::optional<Tensor> q_norm = {};
  std::optional<Tensor> k_norm = {};
  double eps = 0;

  int64_t size() const { return keys.dim(3); }
  int64_t kv_width() const { return keys.dim(2) * keys.dim(3); }
};

// y[m, n] = factor * sum over k of (x[m, k] - x_zero) * (code[n, k] * scales[scale_at(n, k)] +
// minimums[scale_at(n, k)]) + bias[n], x from first_row on, x and y dense. Scales and bias may be
// longer than n.
struct QLinear {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  Codes codes = Codes::kLowFirst;
  int64_t row_bytes = 0;  // of weight
  int64_t group = 0;
  ScaleOrder scale_order = ScaleOrder::kFlat;
  int64_t scale_row = 0;  // of groups the scales of one, of blocks those of eight columns
  double factor = 1;
  double x_zero = 0;
  Tensor x;
  int64_t first_row = 0;  // of x
  Tensor weight;
  Tensor scales;
  // Of 4-bit codes: what code 0 of each group stands for, of the type and shape of scales. A format
  // with a scale and a minimum for each group has the minimum and eight times the scale here.
  std::optional<Tensor> minimums;
  std::optional<Tensor> bias;
  // Where set, each row of x is first rounded to 8-bit codes with this scale and zero point.
  std::optional<Tensor> row_scale;
  std::optional<Tensor> row_zero;
  std::optional<Tensor> residual;  // added to y, as many elements
  // Where set, rows of x are first divided by their RMS (with eps), and multiplied by this.
  std::optional<Tensor> norm;
  double eps = 0;
  bool gated = false;  // y = silu(the first half of the columns) * the second half
  std::optional<Rotation> rotation;
  bool interleaved =
      false;  // of every eight of k, x has 0 4 1 5 2 6 3 7: made for this layer alone
  Tensor y;
  std::vector<Tensor>
      more;  // results behind y: each has the columns that follow, in multiples of 4

  int64_t scale_at(int64_t column, int64_t at_k) const {
    if (scale_order == ScaleOrder::kFlat) return column;
    if (scale_order == ScaleOrder::kGroups) return at_k / group * scale_row + column;
    return column / 8 * scale_row + at_k / group * 8 + column % 8;
  }
};

Result<QLinear> describe_qlinear(const Node& n);

// Rows of tables and caches for the first row of x.
struct RotationRows {
  int64_t table = 0;
  int64_t caches = 0;
};
Result<RotationRows> rotation_rows(const Node& n);
Status qlinear_on_cpu(const Node& n, const Host& h);
Result<bool> qlinear_fast(const Node& n, const Host& h, CpuContext& c);

std::span<const Route> qlinear_routes();
std::span<const Route> linear_routes();  // of float weights

}  // namespace pteryx::ops
