// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/host_scratch.h"

#include <algorithm>

#include "pteryx/ops/cpu_scratch.h"

namespace pteryx {

uint64_t host_scratch_bytes(const graph::Graph& g, const Layout& layout, cpu::Pool& pool,
                            Precision precision) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < g.nodes.size(); ++i) {
    if (layout.defs[i] == nullptr || layout.place[i] != Place::kCpu) continue;
    const ops::Node n(g, g.nodes[i], *layout.defs[i], layout.bound);
    most = std::max(most, ops::cpu_scratch_bytes(g, layout.bound, n, pool, precision));
  }
  return most;
}

}  // namespace pteryx
