// Calls of operators, their arguments known by the names of the schema.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <initializer_list>
#include <string_view>

#include "pteryx/graph/graph.h"

namespace pteryx::fuse {

// An argument by its name; kNoValue where the operator has none of that name, or the call leaves it
// out.
graph::ValueId argument(const graph::Node& n, std::string_view name);
// Sets one that the operator has.
void set_argument(graph::Node& n, std::string_view name, graph::ValueId value);

struct Named {
  std::string_view name;
  graph::ValueId value = graph::kNoValue;
};
// Makes a node a call of `op` with these arguments; others are None. False, and nothing changed,
// where there is no such operator.
bool set_call(graph::Graph& g, graph::Node& n, const graph::OpLookup& ops, std::string_view op,
              std::initializer_list<Named> args);

}  // namespace pteryx::fuse
