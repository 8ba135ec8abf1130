// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/graph/build/order.h"

#include <vector>

#include <fmt/format.h>

namespace pteryx::graph {

Status check_order(const Graph& g) {
  if (g.has_jumps) return {};
  std::vector<bool> ready(g.values.size());
  for (size_t i = 0; i < g.values.size(); ++i) {
    const auto* t = std::get_if<Tensor>(&g.values[i]);
    const auto* s = std::get_if<LiveScalar>(&g.values[i]);
    ready[i] = t != nullptr
                   ? (t->has_data() || t->state || numel(t->max) == 0 || !t->unsupported.empty())
                   : s == nullptr;
  }
  for (const ValueId id : g.inputs) ready[index(id)] = true;
  const auto each = [&](ValueId id, const auto& visit) -> Status {
    if (const auto* list = std::get_if<ValueList>(&g[id])) {
      for (const ValueId item : list->items) {
        if (item != kNoValue) PTERYX_TRY(visit(item));
      }
      return {};
    }
    return visit(id);
  };
  for (const Node& n : g.nodes) {
    for (size_t a = 0; a + 1 < n.args.size(); ++a) {
      const bool in_place = n.op != nullptr && n.op->mutates(a) && n.args[a] == n.args.back();
      if (in_place) continue;  // overwritten, not read
      PTERYX_TRY(each(n.args[a], [&](ValueId id) -> Status {
        if (ready[index(id)]) return {};
        return invalid_program(fmt::format("{}: argument {} ({}) is used before it is written",
                                           describe(g, n), a, g.label(id)));
      }));
    }
    PTERYX_TRY(each(n.args.back(), [&](ValueId id) -> Status {
      ready[index(id)] = true;
      return {};
    }));
  }
  for (const ValueId id : g.outputs) {
    if (!ready[index(id)]) {
      return invalid_program(
          fmt::format("output {} of '{}' is never written", g.label(id), g.method));
    }
  }
  return {};
}

}  // namespace pteryx::graph
