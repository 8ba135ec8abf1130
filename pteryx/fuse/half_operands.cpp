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

// The arguments that a node rounds when it multiplies.
std::vector<ValueId> rounded(const Graph& g, const Node& n) {
  if (is_call(n, ops::attention::kPackedOp))
    return {argument(n, "q"), argument(n, "k"), argument(n, "v")};
  if (is_attention(n)) return {argument(n, "q")};  // the others are caches
  if (!is_linear(n)) return {};
  const ValueId norm = argument(n, "norm");  // is taken of x as it is
  if (norm != kNoValue && !std::holds_alternative<Null>(g[norm])) return {};
  return {argument(n, "x")};
}

bool may_be_halves(const Graph& g, const Uses& uses, ValueId id) {
  const Tensor* const t = g.tensor(id);
  return t != nullptr && t->dtype == DType::kF32 && !t->max.empty() &&
         t->max.back() % kVector == 0 && uses.producer(id) != kNoNode && uses.stable(id);
}
bool makes_halves(const Graph& g, const Node& n) {
  return is_attention(n) || is_rotated(n) || is_call(n, kNorm) ||
         (is_linear(n) && is_only_result(g, n));
}

}  // namespace

void halve_operands(Graph& g) {
  const Uses uses(g);
  // How often a value is read by who rounds it, or by a view of which that holds for all reads.
  std::vector<uint32_t> roundings(g.values.size());
  const auto is_operand = [&](ValueId id) {
    return uses.reads(id) > 0 && roundings[index(id)] == uses.reads(id) &&
           may_be_halves(g, uses, id);
  };
  for (size_t i = g.nodes.size(); i-- > 0;) {
    const Node& n = g.nodes[i];
    for (const ValueId id : rounded(g, n)) {
      if (id != kNoValue) ++roundings[index(id)];
    }
    if (is_view(g, n) && is_operand(n.args.back())) ++roundings[index(n.args[0])];
  }
  std::vector<ValueId> halves;
  for (uint32_t v = 0; v < g.values.size(); ++v) {
    const ValueId id{v};
    if (!is_operand(id)) continue;
    // Through views, all of which are operands, to where it is made.
    ValueId from = id;
    while (is_operand(from) && is_view(g, g.nodes[uses.producer(from)]))
      from = g.nodes[uses.producer(from)].args[0];
    if (is_operand(from) && makes_halves(g, g.nodes[uses.producer(from)])) halves.push_back(id);
  }
  for (const ValueId id : halves) std::get<Tensor>(g.values[index(id)]).dtype = DType::kF16;
}

}  // namespace pteryx::fuse
