// Which shape rules say something of their own. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pteryx/graph/graph.h"
#include "pteryx/ops/op.h"
#include "pteryx/session/layout.h"

namespace pteryx::exec {

// Of nodes that read live scalars, those whose shape rules say something that no rule of a node
// before them says: layers of a model say the same. Nodes that make scalars are all there.
std::vector<uint32_t> distinct_rules(const graph::Graph& g, const Layout& layout,
                                     std::span<const uint32_t> nodes, const ops::Live& live);

}  // namespace pteryx::exec
