// Exporters hold i64 as i32 inside a delegate and copy at its border. Readers of indices take both,
// so the copy need not be made. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/fuse/passes.h"
#include "pteryx/fuse/uses.h"

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about
namespace {

bool narrows(const Graph& g, const Node& n, const Uses& uses) {
  if (!is_call(n, kCopyOp)) return false;
  const Tensor* from = g.tensor(n.args[0]);
  const Tensor* to = g.tensor(n.args[1]);
  return from != nullptr && to != nullptr && from->dtype == DType::kI64 &&
         to->dtype == DType::kI32 && from->max == to->max && uses.stable(n.args[0]) &&
         uses.stable(n.args[1]) && !to->has_data();
}

}  // namespace

void drop_narrowing(Graph& g) {
  const Uses uses(g);
  std::vector<uint32_t> copy_of(g.values.size(), kNoNode);
  for (uint32_t i = 0; i < g.nodes.size(); ++i) {
    if (narrows(g, g.nodes[i], uses)) copy_of[index(g.nodes[i].args[1])] = i;
  }
  const auto keep = [&](ValueId id) { copy_of[index(id)] = kNoNode; };
  for (const ValueId id : g.outputs) keep(id);
  for (const Node& n : g.nodes) {
    for (size_t a = 0; a + 1 < n.args.size(); ++a) {
      const bool takes = n.op != nullptr && n.op->narrows(a);
      const bool list = std::holds_alternative<ValueList>(g[n.args[a]]);
      if (takes && !list) continue;
      for_each_value(g, n.args[a], keep);
    }
  }
  std::vector<bool> gone(g.nodes.size());
  for (Node& n : g.nodes) {
    for (size_t a = 0; a + 1 < n.args.size(); ++a) {
      const uint32_t copy = copy_of[index(n.args[a])];
      if (copy == kNoNode) continue;
      gone[copy] = true;
      n.args[a] = g.nodes[copy].args[0];
    }
  }
  erase_nodes(g, gone);
}

}  // namespace pteryx::fuse
