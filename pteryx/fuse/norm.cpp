// Norms: their means and deviations, which only training reads, are not made where nobody does; the
// SiLU behind a group norm becomes part of it.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/norm.h"

#include <algorithm>
#include <array>
#include <utility>

#include "pteryx/fuse/calls.h"
#include "pteryx/fuse/chain.h"
#include "pteryx/fuse/passes.h"

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about
namespace {

constexpr std::string_view kLayerNorm = "aten.native_layer_norm.default";
constexpr std::string_view kGroupNorm = "aten.native_group_norm.default";
constexpr std::string_view kSilu = "aten.silu.default";

void drop_statistics(Graph& g) {
  const Uses uses(g);
  for (const Node& n : g.nodes) {
    if (!is_call(n, kLayerNorm) && !is_call(n, kGroupNorm)) continue;
    auto* results = std::get_if<ValueList>(&g.values[index(n.args.back())]);
    if (results == nullptr) continue;
    for (size_t i = 1; i < results->items.size(); ++i) {
      ValueId& id = results->items[i];
      if (id != kNoValue && uses.reads(id) == 0 && uses.stable(id)) id = kNoValue;
    }
  }
}

void take_silu(Graph& g, const OpLookup& ops) {
  const Chains chains(g);
  Replacements made;
  for (uint32_t i = 0; i < g.nodes.size(); ++i) {
    const Node& norm = g.nodes[i];
    if (!is_call(norm, kGroupNorm)) continue;
    const auto* results = std::get_if<ValueList>(&g[norm.args.back()]);
    if (results == nullptr || results->items.empty() || results->items[0] == kNoValue ||
        std::any_of(results->items.begin() + 1, results->items.end(),
                    [](ValueId id) { return id != kNoValue; }))
      continue;
    const uint32_t next = chains.next(results->items[0]);
    if (next == kNoNode || !is_call(g.nodes[next], kSilu) ||
        !are_alike(g, results->items[0], g.nodes[next].args.back()) ||
        !chains.stays(argument(norm, "x")))
      continue;
    Node call;
    call.delegate = norm.delegate;
    call.call = norm.call;
    const ValueId y = g.nodes[next].args.back();
    const std::vector<ValueId> args = norm.args;
    if (!set_call(g, call, ops, ops::kFusedGroupNorm,
                  {{"activation", g.add(std::string("silu"), "silu")}, {"y", y}}))
      return;
    std::copy(args.begin(), args.end() - 1, call.args.begin());
    made[i];
    made[next].push_back(std::move(call));
  }
  replace_nodes(g, std::move(made));
}

}  // namespace

void simplify_norms(Graph& g, const OpLookup& ops) {
  drop_statistics(g);
  take_silu(g, ops);
}

}  // namespace pteryx::fuse
