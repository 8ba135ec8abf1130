// What stands before or behind a product becomes part of it: the RMS norm of its x, the choice of
// the last row, the gate over its columns. Each is a row: the operator that goes, and what becomes
// of the product.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/fuse/calls.h"
#include "pteryx/fuse/match.h"
#include "pteryx/fuse/passes.h"
#include "pteryx/fuse/products.h"

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about

namespace {

constexpr std::string_view kNorm = "et_vk.rms_norm.default";
constexpr std::string_view kGate = "pteryx.silu_mul";
constexpr std::string_view kSelect = "aten.select_copy.int";

bool is_number(const Graph& g, ValueId id) {
  return std::holds_alternative<double>(g[id]) || std::holds_alternative<int64_t>(g[id]);
}

bool is_linear(const Graph& g, const Node& n) {
  return product_of(n) != nullptr || layer_of(g, n).has_value();
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
  if (!make_product(p.g, product, ops, most_bytes)) return false;
  set_argument(product, "x", x);
  set_argument(product, "norm", weight);
  set_argument(product, "eps", eps);
  p.gone[maker] = true;
  return true;
}

bool is_int(const Graph& g, ValueId id, int64_t v) {
  const auto* i = std::get_if<int64_t>(&g[id]);
  return i != nullptr && *i == v;
}

// The last row of [1, S, K], read by the product alone.
bool take_last(const Matcher& p, uint32_t i, const OpLookup& ops, uint64_t most_bytes) {
  Node& product = p.g.nodes[i];
  const ValueId row = argument(product, "x");
  const uint32_t maker = p.uses.made_by(row, kSelect);
  if (maker == kNoNode || p.uses.reads(row) != 1 || !p.is_none(argument(product, "residual")))
    return false;
  const Node& select = p.g.nodes[maker];
  const ValueId x = argument(select, "x");
  const Tensor* rows = p.g.tensor(x);
  const ValueId dim = argument(select, "dim");
  if (rows == nullptr || rows->max.rank() != 3 || rows->max[0] != 1 || !p.uses.stable(x) ||
      !(is_int(p.g, dim, 1) || is_int(p.g, dim, -2)) ||
      !is_int(p.g, argument(select, "index"), -1) || rows->dtype != p.g.tensor(row)->dtype ||
      !make_product(p.g, product, ops, most_bytes))
    return false;
  set_argument(product, "x", x);
  set_argument(product, "last", p.g.add(true, "last"));
  p.gone[maker] = true;
  return true;
}

// silu(a) * b, where a and b are the two results of one product and nothing else reads them.
bool take_gate(const Matcher& p, uint32_t i) {
  Node& gate = p.g.nodes[i];
  const ValueId a = p.before_views(argument(gate, "a"));
  const ValueId b = p.before_views(argument(gate, "b"));
  const uint32_t maker = p.uses.producer(a);
  if (maker == kNoNode || maker != p.uses.producer(b) || product_of(p.g.nodes[maker]) == nullptr)
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
    if (is_linear(g, g.nodes[i])) {
      take_norm(p, i, ops, most_bytes / 16 * 16);
      take_last(p, i, ops, most_bytes / 16 * 16);
    }
    if (is_call(g.nodes[i], kGate)) take_gate(p, i);
  }
  erase_nodes(g, gone);
}

}  // namespace pteryx::fuse
