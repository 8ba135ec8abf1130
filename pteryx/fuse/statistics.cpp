// Norms give the mean and deviation of their rows, which only training reads.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>

#include "pteryx/fuse/passes.h"
#include "pteryx/fuse/uses.h"

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about

void drop_statistics(Graph& g) {
  constexpr std::array<std::string_view, 2> kNorms = {"aten.native_layer_norm.default",
                                                      "aten.native_group_norm.default"};
  const Uses uses(g);
  for (const Node& n : g.nodes) {
    if (n.op == nullptr || std::ranges::find(kNorms, n.op->name) == kNorms.end()) continue;
    auto* results = std::get_if<ValueList>(&g.values[index(n.args.back())]);
    if (results == nullptr) continue;
    for (size_t i = 1; i < results->items.size(); ++i) {
      ValueId& id = results->items[i];
      if (id != kNoValue && uses.reads(id) == 0 && uses.stable(id)) id = kNoValue;
    }
  }
}

}  // namespace pteryx::fuse
