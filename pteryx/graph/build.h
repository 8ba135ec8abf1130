// From program records to one validated graph.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <vector>

#include "pteryx/graph/graph.h"
#include "pteryx/program/program.h"

namespace pteryx::graph {

// Inlines delegates, resolves views that the exporter expressed by shared addresses, finds state,
// checks every id and that each value is written before it is read. Errors: kInvalidProgram,
// kUnsupported (a foreign delegate).
Result<Graph> build_graph(const program::Program& program, const program::MethodRecord& method,
                          const OpLookup& ops);

// The same for methods that are used together: what they share is state of each.
std::vector<Result<Graph>> build_graphs(const program::Program& program,
                                        std::span<const program::MethodRecord* const> methods,
                                        const OpLookup& ops);

}  // namespace pteryx::graph
