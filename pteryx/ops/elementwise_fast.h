// Elementwise operators on the CPU, with vectors and threads; f32 and f16, and of the families
// those that networks use.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pteryx/ops/op.h"

namespace pteryx::ops {

Result<bool> unary_fast(const Node& n, const Host& h, CpuContext& c);
Result<bool> binary_fast(const Node& n, const Host& h, CpuContext& c);

}  // namespace pteryx::ops
