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

// Compares an input with the bounds that are known before a run, where its elements are indices.
// Errors: kInvalidArgument, with the element, its value and the bound.
Status check_known_indices(const graph::Graph& g, const Layout& layout, uint32_t input,
                           const ops::HostTensor& x);
// The same for all inputs with the bounds that a block has at the sizes of this run, `recorded`.
Status check_live_indices(const graph::Graph& g, const Layout& layout, const Block& block,
                          const ops::Live& recorded, const ops::Live& live, const Memory& memory);

}  // namespace pteryx::exec
