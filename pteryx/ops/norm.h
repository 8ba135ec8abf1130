// Normalisation of rows, for operators that have it in them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pteryx/ops/op.h"

namespace pteryx::ops {

// "pteryx.group_norm": x, weight?, bias?, N, C, HxW, group, eps, activation?, y, with
//   y = activation(group norm of x), none or silu.
inline constexpr const char* kFusedGroupNorm = "pteryx.group_norm";

// Where an operator has the weight and the bias of its channels; 0: it has none.
struct Affine {
  uint8_t weight = 0;
  uint8_t bias = 0;
};
// Weight and bias, where present, have one entry per channel.
Status check_affine(const Node& n, size_t arg, int64_t channels);
// Binds weight and bias where present, and says whether they are.
void bind_affine(const Node& n, const Affine& f, std::vector<Bind>& bind, Options& options);
double affine_on_host(const Node& n, const Host& h, const Affine& f, double v, int64_t channel);

enum class RowOrder : uint8_t {
  kNatural,
  kInterleaved,  // of every eight elements 0 4 1 5 2 6 3 7; rows of f16 in whole eights
};
// y = x / sqrt(mean of the squares of its row + eps) * weight, with a weight for each column.
Status plan_rms_norm(const Node& n, Plan& p, const Tensor& x, const Tensor& weight, double eps,
                     const Tensor& y, RowOrder order = RowOrder::kNatural);

}  // namespace pteryx::ops
