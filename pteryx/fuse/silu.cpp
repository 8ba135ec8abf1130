// SiLU, which exporters take apart into sigmoid and mul, put together again.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "pteryx/fuse/passes.h"
#include "pteryx/fuse/uses.h"

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about
namespace {

constexpr std::string_view kSigmoid = "aten.sigmoid.default";
constexpr std::string_view kMul = "aten.mul.Tensor";
constexpr std::string_view kSilu = "aten.silu.default";
constexpr std::string_view kSiluMul = "pteryx.silu_mul";

bool same_type(const Graph& g, ValueId a, ValueId b) {
  return g.tensor(a) != nullptr && g.tensor(b) != nullptr &&
         g.tensor(a)->dtype == g.tensor(b)->dtype;
}

// A product [a, b, y], of which one factor is made by `op` for it alone: the other comes first.
struct Product {
  uint32_t maker = kNoNode;
  ValueId other = kNoValue;
};
Product product_with(const Graph& g, const Node& n, const Uses& uses, std::string_view op) {
  if (!is_call(n, kMul) || n.args.size() != 3) return {};
  for (const size_t a : {size_t{0}, size_t{1}}) {
    const uint32_t maker = uses.made_by(n.args[a], op);
    if (maker == kNoNode || uses.reads(n.args[a]) != 1 || g.nodes[maker].args.size() != 2) continue;
    const ValueId x = g.nodes[maker].args[0];
    if (same_type(g, x, n.args[a]) && same_type(g, x, n.args.back()) && uses.stable(x))
      return {maker, n.args[1 - a]};
  }
  return {};
}

}  // namespace

void fuse_silu(Graph& g, const OpLookup& ops) {
  const auto replace = [&](std::string_view inner, std::string_view fused, bool square) {
    const OpInfo* info = ops.find(fused);
    if (info == nullptr) return;
    const Uses uses(g);
    std::vector<bool> gone(g.nodes.size());
    for (Node& n : g.nodes) {
      const Product p = product_with(g, n, uses, inner);
      if (p.maker == kNoNode) continue;
      const ValueId x = g.nodes[p.maker].args[0];
      if (square && p.other != x) continue;
      n.args = square ? std::vector{x, n.args.back()} : std::vector{x, p.other, n.args.back()};
      n.op = info;
      n.spelling = info->name;
      gone[p.maker] = true;
    }
    erase_nodes(g, gone);
  };
  replace(kSigmoid, kSilu, true);
  replace(kSilu, kSiluMul, false);
}

}  // namespace pteryx::fuse
