// Every operator Pteryx knows. A family adds its rows in one function; table.cpp lists the
// families.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "pteryx/graph/graph.h"
#include "pteryx/ops/op.h"

namespace pteryx::ops {

// Families, one file each.
void add_binary(std::vector<OpDef>& table);
void add_item(std::vector<OpDef>& table);

// All operators, in family order; made once.
std::span<const OpDef> all_ops();
// The operator a node was resolved to.
const OpDef& op(const graph::OpInfo& info);
// Finds an operator by any of its spellings, for build_graph.
const graph::OpLookup& lookup();

}  // namespace pteryx::ops
