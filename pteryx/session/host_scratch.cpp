// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/host_scratch.h"

#include <algorithm>

#include "pteryx/ops/cpu_scratch.h"

namespace pteryx {

uint64_t host_scratch_bytes(const graph::Graph& g, const Layout& layout, const ops::Live& live,
                            cpu::Pool& pool, Precision precision) {
  uint64_t most = 0;
  for (const Block& b : layout.blocks)
    most = std::max(most, host_scratch_bytes(g, layout, b, live, pool, precision));
  return most;
}

uint64_t host_scratch_bytes(const graph::Graph& g, const Layout& layout, const Block& block,
                            const ops::Live& live, cpu::Pool& pool, Precision precision) {
  uint64_t most = 0;
  for (uint32_t i = block.begin; i < block.end; ++i) {
    if (layout.defs[i] == nullptr || layout.place[i] != Place::kCpu) continue;
    const ops::Node n(g, g.nodes[i], *layout.defs[i], live);
    most = std::max(most, ops::cpu_scratch_bytes(g, live, n, pool, precision));
  }
  return most;
}

}  // namespace pteryx
