// What the caller gives, compared with what the method takes.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>

#include "pteryx/graph/graph.h"
#include "pteryx/ops/op.h"
#include "pteryx/pteryx.h"
#include "pteryx/session/exec/memory.h"
#include "pteryx/session/layout.h"

namespace pteryx::exec {

// Brings inputs where a run reads them, as they lie or converted, and their sizes to `live`.
// Errors: kInvalidArgument, with the input and what of it is wrong.
Status bind_inputs(const graph::Graph& g, const Layout& layout, std::span<const Value> inputs,
                   ops::Live& live, Memory& memory);

}  // namespace pteryx::exec
