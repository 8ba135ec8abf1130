// What only operands of products are made from, at f16 precision. SPDX-License-Identifier:
// BSD-3-Clause
#include <algorithm>

#include "pteryx/fuse/calls.h"
#include "pteryx/fuse/movement.h"
#include "pteryx/fuse/passes.h"
#include "pteryx/fuse/products.h"
#include "pteryx/fuse/uses.h"
#include "pteryx/ops/attention/attention.h"
#include "pteryx/ops/matmul/matmul.h"

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about

namespace {

constexpr std::string_view kAttention[] = {"llama.custom_sdpa.default",
                                           "sdpa_with_kv_cache.default", ops::attention::kPackedOp};
constexpr std::string_view kNorm = "aten.native_layer_norm.default";
constexpr int64_t kVector = 8;  // halves that kernels write and read at once

bool is_attention(const Node& n) {
  return std::ranges::any_of(kAttention, [&](std::string_view op) { return is_call(n, op); });
}
bool is_rotated(const Node& n) {
  return std::ranges::any_of(kProductOps,
                             [&](const ProductOps& o) { return is_call(n, o.rotated); });
}
bool is_linear(const Node& n) {
  return is_call(n, ops::kFusedLinear) ||
         std::ranges::any_of(kProductOps, [&](const ProductOps& o) {
           return is_call(n, o.product) || is_call(n, o.layer);
         });
}
// Results of one product have one type, so that it has to be the only one.
bool is_only_result(const Graph& g, const Node& n) {
  const auto* const results = std::get_if<ValueList>(&g[n.args.back()]);
  return results == nullptr || results->items.size() == 1;
}

// The argument that a node rounds when it multiplies, as it came; kNoValue where it has none.
ValueId rounded(const Graph& g, const Node& n) {
  if (is_attention(n)) return argument(n, "q");
  if (!is_linear(n)) return kNoValue;
  const ValueId norm = argument(n, "norm");  // is taken of x as it is
  return norm == kNoValue || std::holds_alternative<Null>(g[norm]) ? argument(n, "x") : kNoValue;
}

// A value, and those that it is a view of, that nothing else reads. Empty where one of them is not
// to be changed, or where they do not come from an attention, a product or a layer norm.
std::vector<ValueId> only_read_by(const Graph& g, const Uses& uses, ValueId id) {
  std::vector<ValueId> values;
  for (;;) {
    const Tensor* const t = g.tensor(id);
    const uint32_t maker = uses.producer(id);
    if (t == nullptr || t->dtype != DType::kF32 || t->max.empty() || t->max.back() % kVector != 0 ||
        maker == kNoNode || uses.reads(id) != 1 || !uses.stable(id))
      return {};
    values.push_back(id);
    const Node& n = g.nodes[maker];
    if (is_attention(n) || is_rotated(n) || is_call(n, kNorm)) return values;
    if (is_linear(n) && is_only_result(g, n)) return values;
    if (!is_view(g, n)) return {};
    id = n.args[0];
  }
}

}  // namespace

void halve_operands(Graph& g) {
  const Uses uses(g);
  for (const Node& n : g.nodes) {
    const ValueId id = rounded(g, n);
    if (id == kNoValue) continue;
    for (const ValueId each : only_read_by(g, uses, id))
      std::get<Tensor>(g.values[index(each)]).dtype = DType::kF16;
  }
}

}  // namespace pteryx::fuse
