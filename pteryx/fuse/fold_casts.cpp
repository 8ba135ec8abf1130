// Exporters lift the numbers of expressions such as x + 3 into constants of i64 or f64, and cast
// each where it is used. Such a cast is not a node of every run but the type in which the constant
// is read. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "pteryx/fuse/constants.h"
#include "pteryx/fuse/passes.h"
#include "pteryx/fuse/uses.h"

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about
namespace {

bool is_cast(const Node& n) {
  return is_call(n, kCopyOp) || is_call(n, "aten._to_copy.default") ||
         is_call(n, "dim_order_ops._to_dim_order_copy.default");
}

bool folds(const Graph& g, const Node& n, const Uses& uses) {
  if (!is_cast(n)) return false;
  const Tensor* from = g.tensor(n.args.front());
  const Tensor* to = g.tensor(n.args.back());
  if (from == nullptr || to == nullptr || !from->is_constant() || to->has_data()) return false;
  const bool output = std::ranges::find(g.outputs, n.args.back()) != g.outputs.end();
  // Casts of what the GPU holds are cheap there, and their results share memory: those of weights
  // are larger than the weights.
  return is_float(to->dtype) && !is_held_by_gpu(from->dtype) && !output && from->max == to->max &&
         uses.stable(n.args.front()) && uses.stable(n.args.back());
}

}  // namespace

void fold_casts(Graph& g) {
  const Uses uses(g);
  std::vector<bool> gone(g.nodes.size());
  for (size_t i = 0; i < g.nodes.size(); ++i) {
    if (!folds(g, g.nodes[i], uses)) continue;
    const Tensor& from = *g.tensor(g.nodes[i].args.front());
    auto* to = std::get_if<Tensor>(&g.values[index(g.nodes[i].args.back())]);
    to->data = from.data;
    to->dim_order = from.dim_order;
    to->stored = from.stored.value_or(from.dtype);
    gone[i] = true;
  }
  erase_nodes(g, gone);
}

}  // namespace pteryx::fuse
