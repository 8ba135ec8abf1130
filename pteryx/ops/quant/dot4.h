// Quantised linear layers of a few rows by integer dot products.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pteryx/ops/op.h"

namespace pteryx::ops::qlinear {

bool fits_dot4(const Node& n, const gpu::Caps& caps);
Status plan_dot4(const Node& n, Plan& p);

}  // namespace pteryx::ops::qlinear
