// Matrix products with subgroup matrices.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pteryx/ops/subgroup_matrix.h"

namespace pteryx::ops::matmul {

template <MatrixSize Size>
bool fits_subgroup_matrix(const Node& n, const gpu::Caps& caps);
template <MatrixSize Size>
bool suits_subgroup_matrix(const Node& n, const gpu::Caps& caps);
template <MatrixSize Size>
Status plan_subgroup_matrix(const Node& n, Plan& p);

}  // namespace pteryx::ops::matmul
