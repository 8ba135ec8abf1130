// Movement operators that take entries of a dim: slices, single entries, and splits into both.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>

#include "pteryx/ops/movement.h"

namespace pteryx::ops {

namespace {

// A step past the last entry is as good as any other that is, and as small as strides need it.
Result<int64_t> slice_step(const Node& n, size_t arg, int64_t extent) {
  PTERYX_ASSIGN(const int64_t step, n.integer_or(arg, 1));
  if (step < 1)
    return n.fail(Code::kInvalidProgram, fmt::format("step: expected at least 1, got {}", step));
  return std::min(step, std::max<int64_t>(extent, 1));
}

}  // namespace

Result<SliceRange> slice_range(const Node& n, size_t start_arg, int64_t extent) {
  PTERYX_ASSIGN(int64_t start, n.integer_or(start_arg, 0));
  PTERYX_ASSIGN(int64_t end, n.integer_or(start_arg + 1, extent));
  PTERYX_ASSIGN(const int64_t step, slice_step(n, start_arg + 2, extent));
  start = std::clamp<int64_t>(start < 0 ? start + extent : start, 0, extent);
  end = std::clamp<int64_t>(end < 0 ? end + extent : end, 0, extent);
  return SliceRange{start, end > start ? (end - start - 1) / step + 1 : 0, step};
}

Result<int64_t> select_index(const Node& n, size_t arg, int64_t extent) {
  PTERYX_ASSIGN(const int64_t i, n.integer(arg));
  if (i < -extent || i >= extent) {
    return n.fail(Code::kInvalidArgument, fmt::format("{}: {} is outside [-{}, {})",
                                                      n.def().args[arg].name, i, extent, extent));
  }
  return i < 0 ? i + extent : i;
}

Result<std::vector<int64_t>> long_ints(const Node& n, size_t arg) {
  std::vector<int64_t> out;
  for (const double v : n.numbers(arg)) {
    if (std::floor(v) != v || std::fabs(v) > 0x1p40) {
      return n.fail(Code::kInvalidArgument,
                    fmt::format("{}: expected sizes, got {}", n.def().args[arg].name, v));
    }
    out.push_back(static_cast<int64_t>(v));
  }
  return out;
}

namespace {

constexpr size_t kX = 0;

// length entries of dim, step apart, from start on.
Source sliced(const Dims& x, size_t dim, const SliceRange& range) {
  Source s = identity(x);
  s.base = range.start * s.strides[dim];
  s.strides[dim] *= range.step;
  s.dims[dim] = range.length;
  s.result = s.dims;
  return s;
}
Source selected(const Dims& x, size_t dim, int64_t index) {
  Source s = identity(x);
  s.base = index * s.strides[dim];
  s.strides.erase(dim);
  s.dims.erase(dim);
  s.result = s.dims;
  return s;
}

Result<Source> slice(const Node& n, size_t) {
  const Dims x = n.in(kX).dims;
  PTERYX_ASSIGN(const size_t dim, n.dim(1, x.rank()));
  PTERYX_ASSIGN(const SliceRange range, slice_range(n, 2, x[dim]));
  return sliced(x, dim, range);
}

// A live start or end leaves the result's dims as they are, else there would be another plan.
Result<Source> slice_live(const Node& n) {
  if (!n.is_live(2) && !n.is_live(3)) return slice(n, 0);
  const Dims x = n.in(kX).dims;
  PTERYX_ASSIGN(const size_t dim, n.dim(1, x.rank()));
  PTERYX_ASSIGN(const int64_t step, slice_step(n, 4, x[dim]));
  if (!n.is_live(2)) {
    PTERYX_ASSIGN(int64_t start, n.integer_or(2, 0));
    start = std::clamp<int64_t>(start < 0 ? start + x[dim] : start, 0, x[dim]);
    return sliced(x, dim, {start, n.out().dims[dim], step});
  }
  Source s = sliced(x, dim, {1, n.out().dims[dim], step});
  s.start = n.live(2);
  s.start_extent = x[dim];
  return s;
}

Result<Source> narrow(const Node& n, size_t) {
  const Dims x = n.in(kX).dims;
  PTERYX_ASSIGN(const size_t dim, n.dim(1, x.rank()));
  PTERYX_ASSIGN(int64_t start, n.integer(2));
  PTERYX_ASSIGN(const int64_t length, n.integer(3));
  if (start < 0) start += x[dim];
  if (start < 0 || length < 0 || start > x[dim] || length > x[dim] - start) {
    return n.fail(Code::kInvalidArgument,
                  fmt::format("start {} and length {} leave the {} entries of dim {}", start,
                              length, x[dim], dim));
  }
  return sliced(x, dim, {start, length, 1});
}

Result<Source> select(const Node& n, size_t) {
  const Dims x = n.in(kX).dims;
  PTERYX_ASSIGN(const size_t dim, n.dim(1, x.rank()));
  PTERYX_ASSIGN(const int64_t index, select_index(n, 2, x[dim]));
  return selected(x, dim, index);
}
Result<Source> select_live(const Node& n) {
  if (!n.is_live(2)) return select(n, 0);
  const Dims x = n.in(kX).dims;
  PTERYX_ASSIGN(const size_t dim, n.dim(1, x.rank()));
  Source s = selected(x, dim, 1);
  s.start = n.live(2);
  s.start_extent = x[dim];
  return s;
}

// Results that are runs of entries along a dim.

Result<Source> split_sizes(const Node& n, size_t result) {
  const Dims x = n.in(kX).dims;
  PTERYX_ASSIGN(const size_t dim, n.dim(2, x.rank()));
  PTERYX_ASSIGN(const std::vector<int64_t> sizes, long_ints(n, 1));
  int64_t start = 0;
  int64_t sum = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0)
      return does_not_fit(n, fmt::format("split_sizes: expected sizes, got {}", sizes[i]));
    if (i < result) start += sizes[i];
    sum += sizes[i];
  }
  if (sizes.size() != n.out_count() || sum != x[dim]) {
    return does_not_fit(
        n, fmt::format("split_sizes: {} sizes of sum {} for {} results of {} entries", sizes.size(),
                       sum, n.out_count(), x[dim]));
  }
  return sliced(x, dim, {start, sizes[result], 1});
}

Result<Source> split(const Node& n, size_t result) {
  const Dims x = n.in(kX).dims;
  PTERYX_ASSIGN(const int64_t size, n.integer(1));
  PTERYX_ASSIGN(const size_t dim, n.dim(2, x.rank()));
  if (size < 0 || (size == 0 && x[dim] != 0))
    return does_not_fit(n, fmt::format("split_size: got {}", size));
  const int64_t count = x[dim] == 0 ? 1 : (x[dim] - 1) / std::max<int64_t>(size, 1) + 1;
  if (count != static_cast<int64_t>(n.out_count())) {
    return does_not_fit(n, fmt::format("{} entries in runs of {} give {} results, the file has {}",
                                       x[dim], size, count, n.out_count()));
  }
  const int64_t start = static_cast<int64_t>(result) * size;
  return sliced(x, dim, {start, std::min(size, x[dim] - start), 1});
}

Result<Source> unbind(const Node& n, size_t result) {
  const Dims x = n.in(kX).dims;
  PTERYX_ASSIGN(const size_t dim, n.dim(1, x.rank()));
  if (x[dim] != static_cast<int64_t>(n.out_count())) {
    return does_not_fit(n, fmt::format("dim {} has {} entries, the file has {} results", dim,
                                       x[dim], n.out_count()));
  }
  return selected(x, dim, static_cast<int64_t>(result));
}

constexpr Arg kSlice[] = {in("x", kAnyType, 1),   number("dim"),           optional_number("start"),
                          optional_number("end"), optional_number("step"), out("y")};
constexpr Arg kNarrow[] = {in("x", kAnyType, 1), number("dim"), number("start"), number("length"),
                           out("y")};
constexpr Arg kSelect[] = {in("x", kAnyType, 1), number("dim"), number("index"), out("y")};
constexpr Arg kSplitSizes[] = {in("x", kAnyType, 1), ints("split_sizes"), number("dim"),
                               out_list_like_x("y")};
constexpr Arg kSplit[] = {in("x", kAnyType, 1), number("split_size"), number("dim"),
                          out_list_like_x("y")};
constexpr Arg kUnbind[] = {in("x", kAnyType, 1), number("dim"), out_list_like_x("y")};

constexpr MovementRow kRows[] = {
    {"aten.slice_copy.Tensor", {"aten::slice_copy.Tensor_out"}, kSlice, slice, slice_live},
    {"aten.narrow_copy.default", {"aten::narrow_copy.out"}, kNarrow, narrow},
    {"aten.select_copy.int", {"aten::select_copy.int_out"}, kSelect, select, select_live},
    {"aten.split_with_sizes_copy.default",
     {"aten::split_with_sizes_copy.out"},
     kSplitSizes,
     split_sizes},
    {"aten.split_copy.Tensor", {"aten::split_copy.Tensor_out"}, kSplit, split},
    {"aten.unbind_copy.int", {"aten::unbind_copy.int_out"}, kUnbind, unbind},
};

}  // namespace

std::span<const MovementRow> slice_rows() { return kRows; }

}  // namespace pteryx::ops
