// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/fuse/match.h"

namespace pteryx::fuse {
namespace {

constexpr std::string_view kView = "aten.view_copy.default";

// The view that makes a value for one reader.
uint32_t only_view(const Uses& uses, ValueId id) {
  return uses.reads(id) == 1 && uses.stable(id) ? uses.made_by(id, kView) : kNoNode;
}

}  // namespace

ValueId Matcher::before_views(ValueId id) const {
  for (uint32_t v = only_view(uses, id); v != kNoNode; v = only_view(uses, id))
    id = g.nodes[v].args[0];
  return id;
}

void Matcher::drop_views(ValueId id) const {
  for (uint32_t v = only_view(uses, id); v != kNoNode; v = only_view(uses, id)) {
    gone[v] = true;
    id = g.nodes[v].args[0];
  }
}

void drop_unread(Graph& g, std::string_view op) {
  const Uses uses(g);
  std::vector<bool> gone(g.nodes.size());
  for (uint32_t i = 0; i < g.nodes.size(); ++i) {
    if (!is_call(g.nodes[i], op)) continue;
    const ValueId y = g.nodes[i].args.back();
    gone[i] = uses.reads(y) == 0 && uses.stable(y);
  }
  erase_nodes(g, gone);
}

}  // namespace pteryx::fuse
