// What stands before or behind a product becomes part of it: the RMS norm of its x, the gate over
// its columns. Each is a row: the operator that goes, and what becomes of the product.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "pteryx/fuse/calls.h"
#include "pteryx/fuse/match.h"
#include "pteryx/fuse/passes.h"
#include "pteryx/fuse/products.h"

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about

namespace {

constexpr std::string_view kNorm = "et_vk.rms_norm.default";
constexpr std::string_view kGate = "pteryx.silu_mul";

bool is_product(const Node& n) {
  return std::ranges::any_of(kProductOps,
                             [&](const ProductOps& o) { return is_call(n, o.product); });
}
bool is_number(const Graph& g, ValueId id) {
  return std::holds_alternative<double>(g[id]) || std::holds_alternative<int64_t>(g[id]);
}

bool is_linear(const Node& n) {
  return is_product(n) ||
         std::ranges::any_of(kProductOps, [&](const ProductOps& o) { return is_call(n, o.layer); });
}

// A layer as it came becomes a product where it has something to take in.
bool make_product(const Matcher& p, Node& n, const OpLookup& ops, uint64_t most_bytes) {
  if (is_product(n)) return true;
  const auto* layer =
      std::ranges::find_if(kProductOps, [&](const ProductOps& o) { return is_call(n, o.layer); });
  if (layer == std::end(kProductOps)) return false;
  const ValueId y = argument(n, "y");
  const Tensor* from = p.g.tensor(argument(n, "x"));
  const Tensor* weight = p.g.tensor(argument(n, "weight"));
  const Tensor* scales = p.g.tensor(argument(n, "scales"));
  const Tensor* to = p.g.tensor(y);
  const auto fits = [&](const Tensor* t) {
    return t != nullptr &&
           static_cast<uint64_t>(numel(t->max)) * size_bytes(t->dtype) <= most_bytes;
  };
  if (from == nullptr || to == nullptr || !fits(weight) || !fits(scales) ||
      from->max.rank() != to->max.rank() || weight->max.rank() != 2 || to->max.empty() ||
      to->max.back() != weight->max[0])
    return false;
  return set_call(p.g, n, ops, layer->product,
                  {{"x", argument(n, "x")},
                   {"weight", argument(n, "weight")},
                   {"scales", argument(n, "scales")},
                   {"group_size", argument(n, "group_size")},
                   {"bias", argument(n, "bias")},
                   {"widths", p.g.add(IntList{{to->max.back()}}, "widths")},
                   {"y", p.g.add(ValueList{{y}}, "results")}});
}

// norm(x), read by the product alone.
bool take_norm(const Matcher& p, uint32_t i, const OpLookup& ops, uint64_t most_bytes) {
  Node& product = p.g.nodes[i];
  const ValueId normed = argument(product, "x");
  const uint32_t maker = p.uses.made_by(normed, kNorm);
  if (maker == kNoNode || p.uses.reads(normed) != 1 || !p.uses.stable(normed)) return false;
  if (!p.is_none(argument(product, "norm"))) return false;
  const Node& norm = p.g.nodes[maker];
  const ValueId x = argument(norm, "x");
  const ValueId weight = argument(norm, "weight");
  const ValueId eps = argument(norm, "eps");
  const Tensor* w = p.g.tensor(weight);
  if (!p.uses.stable(x) || w == nullptr || !w->is_constant() || !is_number(p.g, eps)) return false;
  if (!make_product(p, product, ops, most_bytes)) return false;
  set_argument(product, "x", x);
  set_argument(product, "norm", weight);
  set_argument(product, "eps", eps);
  p.gone[maker] = true;
  return true;
}

// silu(a) * b, where a and b are the two results of one product and nothing else reads them.
bool take_gate(const Matcher& p, uint32_t i) {
  Node& gate = p.g.nodes[i];
  const ValueId a = p.before_views(argument(gate, "a"));
  const ValueId b = p.before_views(argument(gate, "b"));
  const uint32_t maker = p.uses.producer(a);
  if (maker == kNoNode || maker != p.uses.producer(b) || !is_product(p.g.nodes[maker]))
    return false;
  Node& product = p.g.nodes[maker];
  const auto* results = std::get_if<ValueList>(&p.g[argument(product, "y")]);
  const bool both = results != nullptr && results->items.size() == 2 && results->items[0] == a &&
                    results->items[1] == b && p.uses.reads(a) == 1 && p.uses.reads(b) == 1;
  if (!both || !p.is_none(argument(product, "residual"))) return false;
  const ValueId y = gate.args.back();
  const Tensor* from = p.g.tensor(a);
  const Tensor* other = p.g.tensor(b);
  const Tensor* to = p.g.tensor(y);
  if (from == nullptr || other == nullptr || to == nullptr || from->dtype != to->dtype ||
      from->max != other->max || from->max != to->max || !p.uses.stable(y))
    return false;
  p.drop_views(argument(gate, "a"));
  p.drop_views(argument(gate, "b"));
  set_argument(product, "gated", p.g.add(true, "gated"));
  set_argument(product, "widths", p.g.add(IntList{{from->max.back()}}, "widths"));
  set_argument(product, "y", p.g.add(ValueList{{y}}, "results"));
  p.gone[i] = true;
  return true;
}

}  // namespace

void fill_slots(Graph& g, const OpLookup& ops, uint64_t most_bytes) {
  const Uses uses(g);
  std::vector<bool> gone(g.nodes.size());
  const Matcher p{g, uses, gone};
  for (uint32_t i = 0; i < g.nodes.size(); ++i) {
    if (is_linear(g.nodes[i])) take_norm(p, i, ops, most_bytes / 16 * 16);
    if (is_call(g.nodes[i], kGate)) take_gate(p, i);
  }
  erase_nodes(g, gone);
}

}  // namespace pteryx::fuse
