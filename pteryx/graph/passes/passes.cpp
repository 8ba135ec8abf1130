// The order of the passes. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/graph/passes/passes.h"

namespace pteryx::graph {

void run_passes(Graph& g, const OpLookup& ops) {
  if (g.has_jumps) return;
  drop_narrowing(g);
  fuse_silu(g, ops);
  join_linear(g, ops);
  fold_casts(g);  // behind passes that join data, which has one type
}

}  // namespace pteryx::graph
