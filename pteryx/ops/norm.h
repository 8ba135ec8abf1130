// Normalisation of rows, for operators that have it in them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pteryx/ops/op.h"

namespace pteryx::ops {

// y = x / sqrt(mean of the squares of its row + eps) * weight, with a weight for each column.
Status plan_rms_norm(const Node& n, Plan& p, const Tensor& x, const Tensor& weight, double eps,
                     const Tensor& y);

}  // namespace pteryx::ops
