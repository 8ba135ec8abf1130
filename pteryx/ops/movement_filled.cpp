// Movement operators that repeat, wrap, pad or mask. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "pteryx/base/checked.h"
#include "pteryx/ops/movement.h"

namespace pteryx::ops {
namespace {

constexpr size_t kX = 0;

Status bad(const Node& n, std::string_view text) { return n.fail(Code::kInvalidProgram, text); }

Result<Source> repeat(const Node& n, size_t) {
  const Dims x = n.in(kX).dims;
  PTERYX_ASSIGN(const Dims repeats, n.ints(1));
  if (repeats.rank() < x.rank()) {
    return bad(n, fmt::format("repeats: {} is shorter than the rank of x {}", to_string(repeats),
                              to_string(x)));
  }
  const size_t lead = repeats.rank() - x.rank();
  const Dims own = contiguous_strides(x);
  Source s{.rule = Rule::kWrap, .shifts = Dims::filled(repeats.rank(), 0)};
  for (size_t i = 0; i < repeats.rank(); ++i) {
    const int64_t extent = i < lead ? 1 : x[i - lead];
    const auto size = checked_mul(extent, repeats[i]);
    if (repeats[i] < 0 || !size)
      return does_not_fit(n, fmt::format("repeats: got {}", to_string(repeats)));
    s.dims.push_back(*size);
    s.strides.push_back(i < lead ? 0 : own[i - lead]);
    s.extents.push_back(extent);
  }
  s.result = s.dims;
  return s;
}

Result<Source> roll(const Node& n, size_t) {
  const Dims x = n.in(kX).dims;
  PTERYX_ASSIGN(const Dims shifts, n.ints(1));
  PTERYX_ASSIGN(const Dims list, n.ints(2));
  const bool flat = list.empty();
  if (shifts.rank() != (flat ? 1 : list.rank())) {
    return bad(n, fmt::format("shifts {} and dims {} differ in length", to_string(shifts),
                              to_string(list)));
  }
  Source s = identity(flat ? Dims{numel(x)} : x);
  s.result = x;
  s.rule = Rule::kWrap;
  s.extents = s.dims;
  s.shifts = Dims::filled(s.dims.rank(), 0);
  for (size_t i = 0; i < shifts.rank(); ++i) {
    const auto dim = normalize_dim(flat ? 0 : list[i], s.dims.rank());
    if (!dim.ok()) return bad(n, dim.status().message());
    const size_t d = *dim;
    if (s.dims.empty() || s.dims[d] == 0) continue;
    const int64_t extent = s.dims[d];
    s.shifts[d] = ((s.shifts[d] - shifts[i] % extent) % extent + extent) % extent;
  }
  return s;
}

// Pads of `pads` (pairs from the last dim) around x; negative ones crop.
Result<Source> padded(const Node& n, std::span<const int64_t> pads, Rule rule) {
  Source s = identity(n.in(kX).dims);
  s.rule = rule;
  s.extents = s.dims;
  s.shifts = Dims::filled(s.dims.rank(), 0);
  if (pads.size() % 2 != 0 || pads.size() / 2 > s.dims.rank()) {
    return bad(n, fmt::format("pad: {} entries for x of rank {}", pads.size(), s.dims.rank()));
  }
  for (size_t k = 0; k * 2 < pads.size(); ++k) {
    const size_t d = s.dims.rank() - 1 - k;
    const int64_t before = pads[2 * k];
    const int64_t after = pads[2 * k + 1];
    s.dims[d] += before + after;
    s.shifts[d] = -before;
    const bool mirrors = rule == Rule::kReflect && std::max(before, after) >= s.extents[d];
    const bool repeats = rule == Rule::kReplicate && s.extents[d] == 0;
    if (s.dims[d] < 0 || mirrors || repeats) {
      return does_not_fit(
          n, fmt::format("pad: {} before and {} after do not fit the {} entries of dim {}", before,
                         after, s.extents[d], d));
    }
  }
  s.result = s.dims;
  return s;
}

Result<Source> constant_pad(const Node& n, size_t) {
  PTERYX_ASSIGN(const std::vector<int64_t> pads, long_ints(n, 1));
  PTERYX_ASSIGN(Source s, padded(n, pads, Rule::kPad));
  s.fill = n.number_or(2, 0.0);
  return s;
}

template <Rule kRule, size_t kDims>
Result<Source> edge_pad(const Node& n, size_t) {
  PTERYX_ASSIGN(const std::vector<int64_t> pads, long_ints(n, 1));
  if (pads.size() != 2 * kDims)
    return bad(n, fmt::format("padding: expected {} entries, got {}", 2 * kDims, pads.size()));
  return padded(n, pads, kRule);
}

template <Rule kRule>
Result<Source> triangle(const Node& n, size_t) {
  const Tensor x = n.in(kX);
  PTERYX_ASSIGN(const int64_t diagonal, n.integer(1));
  const int64_t rows = x.dim(-2);
  const int64_t width = x.dim(-1);
  const int64_t batch = rows * width == 0 ? 0 : x.numel() / (rows * width);
  Source s = identity({batch, rows, width});
  s.result = x.dims;
  s.rule = kRule;
  s.diagonal = std::clamp(diagonal, -rows, width);
  return s;
}

constexpr Arg kRepeat[] = {in("x"), ints("repeats"), out("y")};
constexpr Arg kRoll[] = {in("x"), ints("shifts"), optional_ints("dims"), out("y")};
constexpr Arg kPadArgs[] = {in("x"), ints("pad"), optional_number("value"), out("y")};
constexpr Arg kEdgePad[] = {in("x"), ints("padding"), out("y")};
constexpr Arg kTriangle[] = {in("x", kAnyType, 2), number("diagonal"), out("y")};

constexpr MovementRow kRows[] = {
    {"aten.repeat.default", {"aten::repeat.out"}, kRepeat, repeat},
    {"aten.roll.default", {"aten::roll.out"}, kRoll, roll},
    {"aten.constant_pad_nd.default", {"aten::constant_pad_nd.out"}, kPadArgs, constant_pad},
    {"aten.reflection_pad1d.default",
     {"aten::reflection_pad1d.out"},
     kEdgePad,
     edge_pad<Rule::kReflect, 1>},
    {"aten.reflection_pad2d.default",
     {"aten::reflection_pad2d.out"},
     kEdgePad,
     edge_pad<Rule::kReflect, 2>},
    {"aten.reflection_pad3d.default",
     {"aten::reflection_pad3d.out"},
     kEdgePad,
     edge_pad<Rule::kReflect, 3>},
    {"aten.replication_pad1d.default",
     {"aten::replication_pad1d.out"},
     kEdgePad,
     edge_pad<Rule::kReplicate, 1>},
    {"aten.replication_pad2d.default",
     {"aten::replication_pad2d.out"},
     kEdgePad,
     edge_pad<Rule::kReplicate, 2>},
    {"aten.replication_pad3d.default",
     {"aten::replication_pad3d.out"},
     kEdgePad,
     edge_pad<Rule::kReplicate, 3>},
    {"aten.tril.default", {"aten::tril.out"}, kTriangle, triangle<Rule::kLower>},
    {"aten.triu.default", {"aten::triu.out"}, kTriangle, triangle<Rule::kUpper>},
};

}  // namespace

std::span<const MovementRow> filled_rows() { return kRows; }

}  // namespace pteryx::ops
