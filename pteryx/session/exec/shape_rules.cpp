// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/exec/shape_rules.h"

#include <algorithm>
#include <type_traits>

namespace pteryx::exec {

using graph::index;
using graph::ValueId;

namespace {

// Whether a shape rule sees the same in both arguments, whatever the live scalars are.
bool alike(const graph::Graph& g, const ops::Live& live, ValueId a, ValueId b) {
  if (a == b) return true;
  if (a == graph::kNoValue || b == graph::kNoValue) return false;
  const graph::Value& x = g[a];
  const graph::Value& y = g[b];
  if (const auto* s = std::get_if<graph::Tensor>(&x)) {
    const auto* t = std::get_if<graph::Tensor>(&y);
    return t != nullptr && s->dtype == t->dtype && s->max == t->max && s->dynamic == t->dynamic &&
           s->is_constant() == t->is_constant() && live.dims[index(a)] == live.dims[index(b)];
  }
  if (const auto* s = std::get_if<graph::ValueList>(&x)) {
    const auto* t = std::get_if<graph::ValueList>(&y);
    return t != nullptr && std::ranges::equal(s->items, t->items, [&](ValueId c, ValueId d) {
             return alike(g, live, c, d);
           });
  }
  const auto same = [&]<typename T>(std::type_identity<T>) {
    const T* const s = std::get_if<T>(&x);
    const T* const t = std::get_if<T>(&y);
    return s != nullptr && t != nullptr && *s == *t;
  };
  return (std::holds_alternative<graph::Null>(x) && std::holds_alternative<graph::Null>(y)) ||
         same(std::type_identity<int64_t>()) || same(std::type_identity<double>()) ||
         same(std::type_identity<bool>());
}

}  // namespace

std::vector<uint32_t> distinct_rules(const graph::Graph& g, const Layout& layout,
                                     std::span<const uint32_t> nodes, const ops::Live& live) {
  constexpr size_t kMost = 64;  // that are compared with
  std::vector<uint32_t> distinct;
  for (const uint32_t i : nodes) {
    const graph::Node& n = g.nodes[i];
    const auto says_the_same = [&](uint32_t other) {
      const graph::Node& m = g.nodes[other];
      return layout.defs[i] == layout.defs[other] &&
             std::ranges::equal(n.args, m.args,
                                [&](ValueId a, ValueId b) { return alike(g, live, a, b); });
    };
    const bool makes_scalar = std::holds_alternative<graph::LiveScalar>(g[n.args.back()]);
    const auto last = std::span(distinct).last(std::min(distinct.size(), kMost));
    if (makes_scalar || std::ranges::none_of(last, says_the_same)) distinct.push_back(i);
  }
  return distinct;
}

}  // namespace pteryx::exec
