// Scales and minimums that only products with 4-bit weights read. SPDX-License-Identifier:
// BSD-3-Clause
#include "pteryx/fuse/calls.h"
#include "pteryx/fuse/passes.h"
#include "pteryx/fuse/uses.h"
#include "pteryx/ops/table.h"

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about
namespace {

// What a node takes in blocks of eight columns; kNoValue elsewhere.
struct Taken {
  bool product = false;
  ValueId scales = kNoValue;
  ValueId minimums = kNoValue;
};
Taken taken_by(const Graph& g, const Node& n) {
  if (n.op == nullptr) return {};
  const bool product = ops::op(*n.op).family == "qlinear" && argument(n, "group_size") != kNoValue;
  if (!product && !is_call(n, "et_vk.embedding_q4gsw.default")) return {};
  const ValueId minimums = argument(n, "minimums");
  const bool any = minimums != kNoValue && g.tensor(minimums) != nullptr;
  return {product, argument(n, "scales"), any ? minimums : kNoValue};
}

// [groups, columns] as the file has them; where both dims are equal, a table may mean them the
// other way.
bool is_plain(const Tensor* t) {
  return t != nullptr && t->is_constant() && t->dtype == DType::kF32 && !t->stored &&
         t->dim_order.empty() && t->max.rank() == 2 && t->max[0] > 0 && t->max[1] > 0 &&
         t->max[1] % 8 == 0 && t->max[0] != t->max[1];
}

}  // namespace

LayerScales layer_scales(const Graph& g) {
  std::vector<bool> of_product(g.values.size());
  std::vector<bool> of_minimums(g.values.size());
  std::vector<bool> other(g.values.size());
  LayerScales found;
  for (const Node& n : g.nodes) {
    const Taken t = taken_by(g, n);
    for (const ValueId arg : n.args) {
      for_each_value(g, arg, [&](ValueId id) {
        if (id != t.scales && id != t.minimums) other[index(id)] = true;
      });
    }
    if (t.scales != kNoValue && t.product) of_product[index(t.scales)] = true;
    if (t.minimums == kNoValue) continue;
    of_minimums[index(t.minimums)] = true;
    found.pairs.push_back({t.scales, t.minimums});
  }
  for (const auto* ids : {&g.inputs, &g.outputs}) {
    for (const ValueId id : *ids) other[index(id)] = true;
  }
  for (uint32_t v = 0; v < g.values.size(); ++v) {
    const ValueId id{v};
    if (other[v] || !(of_product[v] || of_minimums[v]) || !is_plain(g.tensor(id))) continue;
    (of_product[v] ? found.scales : found.minimums).push_back(id);
  }
  return found;
}

}  // namespace pteryx::fuse
