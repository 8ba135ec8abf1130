// Operators that only move elements: each result element is a source element or a fill value. An
// operator states where its elements come from (Source); one kernel moves every element type bit
// for bit.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "pteryx/ops/op.h"

namespace pteryx::ops {

// How coordinate c of a dim becomes a coordinate of the source. The shader has the same names.
enum class Rule : uint32_t {
  kEvery,      // c
  kWrap,       // (c + shift) mod extent
  kPad,        // c + shift; the fill value outside [0, extent)
  kReflect,    // c + shift, mirrored at both ends
  kReplicate,  // c + shift, clamped to the ends
  kLower,      // c, the fill value above the diagonal of the last two dims
  kUpper,      // c, the fill value below it
};

// Element c of the result is x[base + sum of rule(c_d) * strides_d].
struct Source {
  Dims result;   // dims of the result
  Dims dims;     // the same, or a finer split of them
  Dims strides;  // into x, 0 and negative ones included
  int64_t base = 0;
  Rule rule = Rule::kEvery;
  Dims shifts = {};
  Dims extents = {};
  double fill = 0;
  int64_t diagonal = 0;
  // A base that follows a live start along a dim: start * base, negative ones counted from the end
  // of its `start_extent` entries, all of them clamped to it.
  std::optional<LiveInt> start = {};
  int64_t start_extent = 0;
};

// x as it is: what an operator changes.
Source identity(const Dims& x);
// The error of arguments that do not go with the sizes of this run.
Status does_not_fit(const Node& n, std::string_view text);

struct MovementRow {
  std::string_view name;
  std::array<std::string_view, 2> spellings;
  std::span<const Arg> args;  // x is the first
  Result<Source> (*source)(const Node&, size_t result);
  // The same for a plan, once the result's dims are known: leaves live arguments to the shader.
  Result<Source> (*live_source)(const Node&) = nullptr;
};
std::span<const MovementRow> strided_rows();
std::span<const MovementRow> slice_rows();
std::span<const MovementRow> filled_rows();

// y = the elements of x that `source` says.
Status plan_moved(const Node& n, Plan& p, const Source& source, const Tensor& x, const Tensor& y);

// The same on the CPU, with threads; false: not these, and nothing was done.
bool move_fast(const Source& s, const HostTensor& x, const HostTensor& y, CpuContext& c);

// start, end and step of a slice resolved against a live extent: None, negative and far values as
// PyTorch has them.
struct SliceRange {
  int64_t start = 0;
  int64_t length = 0;
  int64_t step = 1;
};
Result<SliceRange> slice_range(const Node& n, size_t start_arg, int64_t extent);
// An index argument against a live extent, negative counted from the end. Errors: kInvalidArgument
// out of range.
Result<int64_t> select_index(const Node& n, size_t arg, int64_t extent);
// A list of ints of any length.
Result<std::vector<int64_t>> long_ints(const Node& n, size_t arg);

}  // namespace pteryx::ops
