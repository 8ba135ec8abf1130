// The order of the passes. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/fuse/passes.h"

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about

std::vector<SplitWeight> run_passes(Graph& g, const OpLookup& ops, const PassOptions& options) {
  if (options.fuse && !g.has_jumps) {
    drop_narrowing(g);
    undo_casts(g, ops);  // before patterns that stop at them
    take_minimums(g, ops, options.most_constant_bytes / 16 * 16);  // before products become layers
    fuse_silu(g, ops);
    fuse_attention(g, ops);
    simplify_movement(g, ops);  // with what attention has made
    extend_conv(g, ops);
    simplify_norms(g, ops);
    join_linear(g, ops, options.most_constant_bytes);
    fill_slots(g, ops, options.most_constant_bytes);
    rotate_products(g, ops);
    extend_linear(g, ops);  // behind those that look for a gate
    if (options.precision == Precision::kF16) halve_operands(g);
    fold_casts(g);  // behind passes that join data, which has one type
  }
  return split_rows(g, ops, options.most_constant_bytes);  // behind those that make constants
}

}  // namespace pteryx::fuse
