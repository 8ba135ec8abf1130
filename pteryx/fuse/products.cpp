// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/fuse/products.h"

#include <algorithm>

#include "pteryx/fuse/calls.h"
#include "pteryx/fuse/constants.h"
#include "pteryx/fuse/uses.h"

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about

namespace {

ValueId given(const Graph& g, const Node& n, std::string_view name) {
  const ValueId id = argument(n, name);
  return id == kNoValue || std::holds_alternative<Null>(g[id]) ? kNoValue : id;
}

bool is_tensor(const Graph& g, ValueId id) { return id != kNoValue && g.tensor(id) != nullptr; }

// Files may have anything in the place of an argument.
bool has_tensors(const Graph& g, const Layer& l) {
  return is_tensor(g, l.x) && is_tensor(g, l.weight) && is_tensor(g, l.y) &&
         (l.scales == kNoValue || is_tensor(g, l.scales)) &&
         (l.minimums == kNoValue || is_tensor(g, l.minimums)) &&
         (l.bias == kNoValue || is_tensor(g, l.bias));
}

}  // namespace

const ProductOps* product_of(const Node& n) {
  const auto* it =
      std::ranges::find_if(kProductOps, [&](const ProductOps& o) { return is_call(n, o.product); });
  return it == std::end(kProductOps) ? nullptr : it;
}

std::optional<Layer> layer_of(const Graph& g, const Node& n) {
  const auto* ops = std::ranges::find_if(kProductOps, [&](const ProductOps& o) {
    return is_call(n, o.layer) || is_call(n, o.product);
  });
  if (ops == std::end(kProductOps)) return std::nullopt;
  Layer l{.ops = ops,
          .x = given(g, n, "x"),
          .weight = given(g, n, "weight"),
          .scales = given(g, n, "scales"),
          .group = given(g, n, "group_size"),
          .minimums = given(g, n, "minimums"),
          .bias = given(g, n, "bias"),
          .y = given(g, n, "y")};
  if (is_call(n, ops->layer)) return has_tensors(g, l) ? std::optional(l) : std::nullopt;
  for (const std::string_view slot : {"norm", "residual", "gated", "last"}) {
    if (given(g, n, slot) != kNoValue) return std::nullopt;
  }
  const auto* results = l.y == kNoValue ? nullptr : std::get_if<ValueList>(&g[l.y]);
  if (results == nullptr || results->items.size() != 1) return std::nullopt;
  l.y = results->items[0];
  return has_tensors(g, l) ? std::optional(l) : std::nullopt;
}

bool is_plain_float(const Tensor& t) { return t.dtype == DType::kF32 || t.dtype == DType::kF16; }

uint64_t padded_bytes(const Tensor& t) {
  const auto elements = static_cast<uint64_t>(numel(t.max));
  if (elements == 0 || t.max.rank() != 2) return elements * size_bytes(t.dtype);
  const auto rows = static_cast<uint64_t>(t.max[0]);
  return rows * padded_row(elements / rows * size_bytes(t.dtype));
}

bool make_product(Graph& g, Node& n, const OpLookup& ops, uint64_t most_bytes) {
  if (product_of(n) != nullptr) return true;
  const auto l = layer_of(g, n);
  if (!l) return false;
  const Tensor* x = g.tensor(l->x);
  const Tensor* weight = g.tensor(l->weight);
  const Tensor* y = g.tensor(l->y);
  const bool floats = l->scales == kNoValue;
  if (x == nullptr || weight == nullptr || y == nullptr || padded_bytes(*weight) > most_bytes ||
      (floats && !(is_plain_float(*x) && is_plain_float(*weight) && is_plain_float(*y))) ||
      x->max.rank() != y->max.rank() || weight->max.rank() != 2 || y->max.empty() ||
      y->max.back() != weight->max[0])
    return false;
  if (l->scales != kNoValue &&
      (g.tensor(l->scales) == nullptr || padded_bytes(*g.tensor(l->scales)) > most_bytes))
    return false;
  return set_call(g, n, ops, l->ops->product,
                  {{"x", l->x},
                   {"weight", l->weight},
                   {"scales", l->scales},
                   {"group_size", l->group},
                   {"bias", l->bias},
                   {"widths", g.add(IntList{{y->max.back()}}, "widths")},
                   {"y", g.add(ValueList{{l->y}}, "results")}});
}

}  // namespace pteryx::fuse
