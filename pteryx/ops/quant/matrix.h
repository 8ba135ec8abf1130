// Quantised linear layers with subgroup matrices, in tiles of 128 or 64.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pteryx/ops/quant/qlinear.h"

namespace pteryx::ops::qlinear {

template <int64_t Tile>
bool fits_matrix(const Node& n, const gpu::Caps& caps);
template <int64_t Tile>
bool suits_matrix(const Node& n, const gpu::Caps& caps);
template <int64_t Tile>
Status matrix(const Node& n, Plan& p, QLinear d);

}  // namespace pteryx::ops::qlinear
