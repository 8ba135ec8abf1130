// What patterns ask of a graph.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>
#include <vector>

#include "pteryx/fuse/uses.h"

namespace pteryx::fuse {

struct Matcher {
  Graph& g;
  const Uses& uses;
  std::vector<bool>& gone;  // nodes to be taken out

  bool is_none(ValueId id) const {
    return id == kNoValue || std::holds_alternative<graph::Null>(g[id]);
  }
  // Back from a value through views that nothing else reads.
  ValueId before_views(ValueId id) const;
  void drop_views(ValueId id) const;
};

// Takes out the calls of `op` whose result nobody reads.
void drop_unread(Graph& g, std::string_view op);

}  // namespace pteryx::fuse
