// Indices outside their tensor: what bounds an index in a call, and how one outside is told.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "pteryx/ops/op.h"

namespace pteryx::ops {

// Where a node reports an index on the GPU, in u32 words that are 0 before: kFaultRaised and the
// argument, then element, value and extent of the first that was seen.
inline constexpr uint32_t kFaultWords = 4;
inline constexpr uint32_t kFaultRaised = 0x80000000U;

// One index of a node: an argument, or a member of a list.
struct IndexArg {
  size_t arg = 0;
  size_t member = 0;
};

// How many places it has at the live sizes. Errors: kInvalidProgram for a dim that is not there.
Result<int64_t> index_extent(const Node& n, const IndexArg& at);

// "element 3 is 9, outside [-8, 8), dim 1 of x (value 2)"
std::string outside_text(const Node& n, const IndexArg& at, int64_t element, int64_t value,
                         int64_t extent);
inline bool is_outside(const IndexBound& b, int64_t value, int64_t extent) {
  return value >= extent || value < (b.from_end ? -extent : 0);
}

// The place that an element of an index names. Errors: kInvalidArgument for one outside.
Result<int64_t> checked_index(const Node& n, const IndexArg& at, int64_t element, int64_t value,
                              int64_t extent);

// The places that all elements of an index name. Errors: as above.
Status read_places(const Node& n, const IndexArg& at, const HostTensor& index, int64_t extent,
                   int64_t* places);

// What common/place.wgsl is told of an argument that has a bound: `arg` and `from_end`.
Options place_options(const Node& n, size_t arg);

// What a slot that was raised says. `words`: kFaultWords of them.
Status fault_status(const Node& n, std::span<const uint32_t> words);

}  // namespace pteryx::ops
