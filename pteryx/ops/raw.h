// Elements as bits, whatever their type.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pteryx/ops/op.h"

namespace pteryx::ops {

// The bytes of one tensor copied to another of the same size and type; nothing to do where both are
// one value.
Status plan_raw_copy(const Node& n, Plan& p, const Tensor& from, const Tensor& to);
void cpu_raw_copy(const HostTensor& from, const HostTensor& to);
// A value as an element of a type of at most 4 bytes holds it, in the low bits.
uint32_t element_bits(double value, DType dtype);

}  // namespace pteryx::ops
