// Moves of data as patterns see them: what only gives elements another place, or a row of bytes
// other dims.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <vector>

#include "pteryx/fuse/uses.h"

namespace pteryx::fuse {

// Every tensor has the dims of the file in every run.
bool has_fixed_sizes(const Graph& g);

// The result is the same bytes under other dims.
bool is_view(const Graph& g, const Node& n);
// The result is argument 0 as another float type, of the same dims.
bool is_float_cast(const Graph& g, const Node& n);
// Of a permutation of dims: which dim of its argument each dim of the result is.
std::optional<std::vector<size_t>> order_of(const Graph& g, const Node& n);

// The dims that are not 1: what a view that only adds or drops dims of 1 keeps.
Dims without_ones(const Dims& dims);
// A permutation among those; `dims` are the argument's.
std::vector<size_t> without_ones(const Dims& dims, const std::vector<size_t>& order);

// Back from a value through views, and through casts where those do not matter.
enum class Casts : uint8_t { kStop, kPass };
ValueId behind_views(const Graph& g, const Uses& uses, ValueId id, Casts casts = Casts::kStop);
// The same through views that keep the dims which are not 1.
ValueId behind_ones(const Graph& g, const Uses& uses, ValueId id);

// A view of x with the dims of y, as a node.
Node view_of(const graph::OpLookup& ops, ValueId x, ValueId y);

// How often each value is read.
std::vector<uint32_t> all_reads(const Graph& g);
// Takes out calls of operators that only move or weigh data and whose results nobody reads any
// more; what was not read before either is what the program says.
void drop_unread_moves(Graph& g, const std::vector<uint32_t>& before);

}  // namespace pteryx::fuse
