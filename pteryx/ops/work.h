// How much a call computes and moves, for profiles.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pteryx/ops/op.h"

namespace pteryx::ops {

// Multiplications and additions of matrix products, convolutions and attention at the live sizes;
// 0 for other operators. A kernel that knows better says so in DispatchDesc::flops.
double flops_of(const Node& n);

// Bytes of a tensor argument that a call reads or writes: of a table the rows that are looked up,
// of a cache the rows up to the position, of anything else all of it.
double bytes_of(const Node& n, ValueId id);

}  // namespace pteryx::ops
