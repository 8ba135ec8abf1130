// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/host_constants.h"

#include <algorithm>

#include "pteryx/ops/cpu_scratch.h"

namespace pteryx {

using graph::index;

// Of each root: whether it lies in several places, and somebody reads it in one piece.
std::vector<bool> HostConstants::joined(const graph::Graph& g, const Layout& layout) const {
  std::vector<bool> joined(layout.roots.size());
  const auto is_apart = [&](graph::ValueId id) {
    const uint32_t root = layout.root_of[index(id)];
    if (root == kNone || !layout.roots[root].constant || layout.roots[root].state) return false;
    return g.tensor(layout.roots[root].value)->data.size() > 1;
  };
  for (uint32_t i = 0; i < g.nodes.size(); ++i) {
    if (layout.defs[i] == nullptr || layout.place[i] != Place::kCpu) continue;
    std::vector<graph::ValueId> apart;
    for (const graph::ValueId arg : g.nodes[i].args) {
      for_each_tensor(g, arg, [&](graph::ValueId id) {
        if (is_apart(id)) apart.push_back(id);
      });
    }
    if (apart.empty()) continue;
    std::vector<graph::ValueId> taken;
    if (kernels_.pool != nullptr) {
      const ops::Node n(g, g.nodes[i], *layout.defs[i], layout.bound);
      taken = ops::taken_in_parts(g, layout.bound, n, *kernels_.pool, kernels_.precision);
    }
    for (const graph::ValueId id : apart) {
      if (std::ranges::find(taken, id) == taken.end()) joined[layout.root_of[index(id)]] = true;
    }
  }
  return joined;
}

void HostConstants::add(const graph::Graph& g, const Layout& layout) {
  const std::vector<bool> in_one_piece = joined(g, layout);
  for (size_t i = 0; i < layout.roots.size(); ++i) {
    const Root& r = layout.roots[i];
    if (!r.host || !r.constant || r.state) continue;
    const graph::Tensor& t = *g.tensor(r.value);
    uint64_t joined = 0;
    for (const ByteRange& range : t.data) joined += in_one_piece[i] ? range.size : 0;
    if (!t.data.empty() && t.data.front().source >= files_) {
      for (const ByteRange& range : t.data) made_.add(range);
      copied_ += joined;
      continue;
    }
    const bool is_converted = !t.dim_order.empty() || t.stored.value_or(t.dtype) != t.dtype;
    uint64_t copied = ConstantBytes::copied_bytes(t, sources_);
    if (!is_converted) copied += joined;
    copied_ += copied;
    if (copied > 0) continue;
    for (const ByteRange& range : t.data) in_place_.add(range);
  }
}

}  // namespace pteryx
