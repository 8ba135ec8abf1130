// The shared argument checks: arity, kind, element type and rank of every argument, before any op
// code runs.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pteryx/ops/op.h"

namespace pteryx::ops {

// Checks one node against its op's schema. Errors: kInvalidProgram (arity, kind, rank),
// kUnsupported (element type).
Status check_schema(const graph::Graph& g, const graph::Node& n, const OpDef& def);

// True if every tensor of the call can live in GPU buffers and the op has a GPU plan for it.
bool runs_on_gpu(const Node& n);

}  // namespace pteryx::ops
