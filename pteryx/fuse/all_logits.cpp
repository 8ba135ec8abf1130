// A language model that gives the logits of every position, not of the last alone.
// SPDX-License-Identifier: BSD-3-Clause
#include <array>

#include "pteryx/fuse/passes.h"
#include "pteryx/fuse/uses.h"

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about
namespace {

constexpr std::string_view kSelect = "aten.select_copy.int";
constexpr std::string_view kView = "aten.view_copy.default";
// Work on rows, whatever dims stand in front; x is their first argument.
constexpr std::array<std::string_view, 5> kRowwise = {
    "et_vk.rms_norm.default", "et_vk.linear_q4gsw.default", "aten._weight_int8pack_mm.default",
    "et_vk.linear_qcs4w.default", "aten.linear.default"};

bool takes_last(const Graph& g, const Node& n) {
  if (!is_call(n, kSelect) || n.args.size() != 4 || g.tensor(n.args[0]) == nullptr) return false;
  const auto* dim = std::get_if<int64_t>(&g[n.args[1]]);
  const auto* at = std::get_if<int64_t>(&g[n.args[2]]);
  const size_t rank = g.tensor(n.args[0])->max.rank();
  return rank == 3 && dim != nullptr && at != nullptr && (*dim == 1 || *dim == -2) && *at == -1;
}

bool rowwise(const Node& n) {
  for (const std::string_view op : kRowwise) {
    if (is_call(n, op)) return true;
  }
  return false;
}

}  // namespace

bool keep_all_logits(Graph& g) {
  if (g.has_jumps || g.outputs.size() != 1) return false;
  const Uses uses(g);
  // Back from the result to where the last row is taken.
  std::vector<uint32_t> path;
  ValueId at = g.outputs[0];
  uint32_t maker = uses.producer(at);
  while (maker != kNoNode && !takes_last(g, g.nodes[maker])) {
    const Node& n = g.nodes[maker];
    const bool view = is_call(n, kView) && g.tensor(n.args[0]) != nullptr &&
                      g.tensor(n.args[0])->max == g.tensor(n.args.back())->max;
    if ((!view && !rowwise(n)) || uses.reads(at) != 1) return false;
    path.push_back(maker);
    at = n.args[0];
    maker = uses.producer(at);
  }
  if (maker == kNoNode || uses.reads(at) != 1) return false;
  // Forward again, over all rows.
  std::vector<bool> gone(g.nodes.size());
  gone[maker] = true;
  ValueId x = g.nodes[maker].args[0];
  const Dims rows = g.tensor(x)->max;
  for (size_t i = path.size(); i-- > 0;) {
    Node& n = g.nodes[path[i]];
    if (is_call(n, kView)) {
      gone[path[i]] = true;
      continue;
    }
    n.args[0] = x;
    x = n.args.back();
    Tensor& y = std::get<Tensor>(g.values[index(x)]);
    const int64_t width = y.max.back();
    y.max = rows;
    y.max[2] = width;
  }
  g.outputs[0] = x;
  erase_nodes(g, gone);
  return true;
}

}  // namespace pteryx::fuse
