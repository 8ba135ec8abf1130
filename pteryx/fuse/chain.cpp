// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/fuse/chain.h"

#include <utility>

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about

uint32_t Chains::next(ValueId id) const {
  const uint32_t reader = uses_.stable(id) ? uses_.reader(id) : kNoNode;
  if (reader == kNoNode || g_.nodes[reader].op == nullptr) return kNoNode;
  const ValueId y = g_.nodes[reader].args.back();
  return g_.tensor(y) != nullptr && uses_.stable(y) ? reader : kNoNode;
}

bool is_number(const Graph& g, ValueId id, double v) {
  const auto* i = std::get_if<int64_t>(&g[id]);
  const auto* d = std::get_if<double>(&g[id]);
  return (i != nullptr && static_cast<double>(*i) == v) || (d != nullptr && *d == v);
}

ValueId added_to(const Graph& g, const Node& n, ValueId y) {
  if (!is_call(n, "aten.add.Tensor") || n.args.size() != 4 || !is_number(g, n.args[2], 1))
    return kNoValue;
  return n.args[0] == y ? n.args[1] : n.args[0];
}

bool are_alike(const Graph& g, ValueId a, ValueId b) {
  const Tensor* x = g.tensor(a);
  const Tensor* y = g.tensor(b);
  return x != nullptr && y != nullptr && is_float(x->dtype) && x->dtype == y->dtype &&
         x->max == y->max;
}

void replace_nodes(Graph& g, Replacements made) {
  std::vector<Node> nodes;
  for (uint32_t i = 0; i < g.nodes.size(); ++i) {
    const auto at = made.find(i);
    if (at == made.end()) {
      nodes.push_back(std::move(g.nodes[i]));
      continue;
    }
    for (Node& n : at->second) nodes.push_back(std::move(n));
  }
  g.nodes = std::move(nodes);
}

}  // namespace pteryx::fuse
