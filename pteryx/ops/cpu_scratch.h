// What kernels on the CPU take while they run. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include "pteryx/ops/op.h"

namespace pteryx::ops {

// Bytes of the arena for the fast kernel of a node at these sizes; it is asked, and does not run.
// 0: there is none.
uint64_t cpu_scratch_bytes(const graph::Graph& g, const Live& live, const Node& n, cpu::Pool& pool,
                           Precision precision);
// Constants in several places that this kernel takes as they lie. Of others, and of all where it
// refuses the call, a copy in one piece is made.
std::vector<ValueId> taken_in_parts(const graph::Graph& g, const Live& live, const Node& n,
                                    cpu::Pool& pool, Precision precision);

}  // namespace pteryx::ops
