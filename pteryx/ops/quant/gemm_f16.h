// Quantised linear layers of many rows at f16 precision: with subgroup matrices, and without.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pteryx/ops/quant/qlinear.h"
#include "pteryx/ops/subgroup_matrix.h"

namespace pteryx::ops::qlinear {

template <MatrixSize Size>
bool fits_subgroup_matrix(const Node& n, const gpu::Caps& caps);
template <MatrixSize Size>
bool suits_subgroup_matrix(const Node& n, const gpu::Caps& caps);
template <MatrixSize Size>
Status plan_subgroup_matrix(const Node& n, Plan& p);

bool fits_tiled_f16(const Node& n, const gpu::Caps& caps);
Status plan_tiled_f16(const Node& n, Plan& p);

}  // namespace pteryx::ops::qlinear
