// Scales that only products with 4-bit weights read. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/fuse/calls.h"
#include "pteryx/fuse/passes.h"
#include "pteryx/fuse/uses.h"
#include "pteryx/ops/table.h"

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about
namespace {

// Where a node takes scales in blocks of eight columns; kNoValue elsewhere.
ValueId scales_of(const Node& n, bool& product) {
  if (n.op == nullptr) return kNoValue;
  product = ops::op(*n.op).family == "qlinear" && argument(n, "group_size") != kNoValue;
  const bool table = is_call(n, "et_vk.embedding_q4gsw.default");
  return product || table ? argument(n, "scales") : kNoValue;
}

// [groups, columns] as the file has them; where both dims are equal, a table may mean them the
// other way.
bool is_plain(const Tensor* t) {
  return t != nullptr && t->is_constant() && t->dtype == DType::kF32 && !t->stored &&
         t->dim_order.empty() && t->max.rank() == 2 && t->max[0] > 0 && t->max[1] > 0 &&
         t->max[1] % 8 == 0 && t->max[0] != t->max[1];
}

}  // namespace

std::vector<ValueId> layer_scales(const Graph& g) {
  std::vector<bool> of_product(g.values.size());
  std::vector<bool> other(g.values.size());
  for (const Node& n : g.nodes) {
    bool product = false;
    const ValueId scales = scales_of(n, product);
    for (const ValueId arg : n.args) {
      for_each_value(g, arg, [&](ValueId id) {
        if (id != scales) other[index(id)] = true;
      });
    }
    if (scales != kNoValue && product) of_product[index(scales)] = true;
  }
  for (const auto* ids : {&g.inputs, &g.outputs}) {
    for (const ValueId id : *ids) other[index(id)] = true;
  }
  std::vector<ValueId> found;
  for (uint32_t v = 0; v < g.values.size(); ++v) {
    if (of_product[v] && !other[v] && is_plain(g.tensor(ValueId{v}))) found.push_back(ValueId{v});
  }
  return found;
}

}  // namespace pteryx::fuse
