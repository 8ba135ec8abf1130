// Rewrites of a graph that keep what it computes and make it cheaper to run, or let it run at all
// where the device has limits.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "pteryx/base/precision.h"
#include "pteryx/graph/graph.h"

namespace pteryx::fuse {

using graph::Graph;
using graph::kNoValue;
using graph::OpLookup;
using graph::SharedPlace;
using graph::ValueId;

struct SplitWeight {
  ValueId weight = kNoValue;
  size_t parts = 0;
};
struct PassOptions {
  bool fuse = true;  // false: only what the device's limits ask for
  // What a shader can see of a constant: the smaller of the limits of a buffer and of a binding.
  uint64_t most_constant_bytes = std::numeric_limits<uint64_t>::max();
  Precision precision = Precision::kF32;  // in which operands are kept, see halve_operands
};
// All of them, in their order; those that go by patterns of operators leave a graph with jumps as
// it is. Returns the weights that were split.
std::vector<SplitWeight> run_passes(Graph& g, const OpLookup& ops, const PassOptions& options = {});

// i64 -> i32 copies whose readers all take i64 indices: the copy goes, they read the source.
void drop_narrowing(Graph& g);
// x * sigmoid(x) -> silu(x); silu(x) * y -> one node.
void fuse_silu(Graph& g, const OpLookup& ops);

// Halves that become floats and halves again, as between delegates -> views.
void undo_casts(Graph& g, const OpLookup& ops);
// Permutations that move nothing or undo each other -> views; products with transposed constants ->
// linear layers.
void simplify_movement(Graph& g, const OpLookup& ops);
// Products, a softmax and what guards it -> attention, over heads where they are.
void fuse_attention(Graph& g, const OpLookup& ops);

// Batch norm, activation, residual and bounds behind a convolution -> part of it.
void extend_conv(Graph& g, const OpLookup& ops);
// Activation, factors, residual and transposition behind a linear layer of floats -> part of it.
void extend_linear(Graph& g, const OpLookup& ops);
// Means and deviations of norms that nobody reads are not made; SiLU behind a group norm -> part of
// it.
void simplify_norms(Graph& g, const OpLookup& ops);

// Constants of types that the GPU does not hold, cast to floats: the result is a constant.
void fold_casts(Graph& g);
// A layer with 4-bit weights, and the product of its minimums with the sums of x over groups ->
// one node. Not with constants of more than `most_bytes`.
void take_minimums(Graph& g, const OpLookup& ops, uint64_t most_bytes);
// Quantised linear layers over one x -> one node; y = layer(x) followed by y + r -> one node.
// Neither with weights of more than `most_bytes`.
void join_linear(Graph& g, const OpLookup& ops, uint64_t most_bytes);
// The RMS norm of a layer's x, the choice of its last row, and the gate over its columns -> part of
// it.
void fill_slots(Graph& g, const OpLookup& ops, uint64_t most_bytes);
// A joined layer that makes queries, keys and values, their rotation and the update of the caches
// -> one node.
void rotate_products(Graph& g, const OpLookup& ops);
// At f16 precision: results of norms, attention and products that only products read, or attention
// as what it multiplies, are kept in f16, to which these round them anyway.
void halve_operands(Graph& g);
// Embedding tables and linear layers with constants of more than `most_bytes`: parts of their rows,
// each a constant, and what puts results together. What cannot be split stays.
std::vector<SplitWeight> split_rows(Graph& g, const OpLookup& ops, uint64_t most_bytes);
// A result that is computed from the last row of [1, S, D] is computed from all rows: [1, S, V].
// False where it is not.
bool keep_all_logits(Graph& g);

// Constants [groups, columns] of f32 that nothing reads but products with 4-bit weights and the
// tables they share them with, as scales, and those that go with them as minimums: these take them
// as [columns / 8, groups, 8], too, but scales and minimums of a product only together.
struct LayerScales {
  std::vector<ValueId> scales;
  std::vector<ValueId> minimums;
  struct Pair {
    ValueId scales = kNoValue;
    ValueId minimums = kNoValue;
  };
  std::vector<Pair> pairs;  // of every product with minimums, among the above or not
};
LayerScales layer_scales(const Graph& g);

struct CacheTypes {
  uint32_t of_type = 0;  // caches that are of the type now
  uint32_t others = 0;   // caches that stay as they are
  std::string why;       // a sentence on the first of these, or on what is there instead of caches
};
// Gives KV caches that type: state which operators take as their caches, and which nothing else
// uses; those at `fixed` places stay. Initial values are converted when they are written. Where
// there are no caches, the largest state counts as one that cannot change.
CacheTypes set_cache_type(Graph& g, DType type, const std::set<SharedPlace>& fixed = {});
// Adds the places of state that other methods share and that cannot be of that type in this one.
void find_fixed_caches(const Graph& g, DType type, std::set<SharedPlace>& fixed);

// Whether a method is (tokens [1, S], position [1]) -> logits, over caches.
bool is_language_model(const Graph& g);
// Adds to such a method the input `settings` and the output `token`, drawn from the logits on the
// GPU, and a history of tokens by position. False if it is not of that form.
bool append_sampling(Graph& g, const OpLookup& ops);
// That history; null where the method draws no tokens.
const graph::Tensor* token_history(const Graph& g);

}  // namespace pteryx::fuse
