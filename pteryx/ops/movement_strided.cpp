// Movement operators that are a walk over x with other strides.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "pteryx/base/checked.h"
#include "pteryx/ops/movement.h"

namespace pteryx::ops {

Source identity(const Dims& dims) {
  const Dims strides = contiguous_strides(dims);
  return {.result = dims, .dims = dims, .strides = strides};
}

Status does_not_fit(const Node& n, std::string_view text) {
  return n.fail(Code::kInvalidArgument, text);
}

namespace {

constexpr size_t kX = 0;

Status bad(const Node& n, std::string_view text) { return n.fail(Code::kInvalidProgram, text); }

Result<size_t> checked_dim(const Node& n, int64_t dim, size_t rank) {
  auto d = normalize_dim(dim, rank);
  if (!d.ok()) return bad(n, d.status().message());
  return d;
}

Source from(const Dims& dims, const Dims& strides, int64_t base = 0) {
  return {.result = dims, .dims = dims, .strides = strides, .base = base};
}

Result<Source> permute(const Node& n, size_t) {
  const Dims x = n.in(kX).dims;
  const Dims own = contiguous_strides(x);
  PTERYX_ASSIGN(const Dims order, n.ints(1));
  Source s;
  std::array<bool, kMaxRank> seen{};
  for (const int64_t dim : order) {
    const auto d = normalize_dim(dim, x.rank());
    if (!d.ok() || seen[*d] || x.empty()) break;
    seen[*d] = true;
    s.dims.push_back(x[*d]);
    s.strides.push_back(own[*d]);
  }
  if (s.dims.rank() != x.rank() || order.rank() != x.rank()) {
    return bad(n,
               fmt::format("dims: {} is not a permutation of {} dims", to_string(order), x.rank()));
  }
  s.result = s.dims;
  return s;
}

Source swapped(const Dims& x, size_t a, size_t b) {
  Source s = identity(x);
  std::swap(s.dims[a], s.dims[b]);
  std::swap(s.strides[a], s.strides[b]);
  s.result = s.dims;
  return s;
}

Result<Source> transpose(const Node& n, size_t) {
  const Dims x = n.in(kX).dims;
  PTERYX_ASSIGN(const size_t a, n.dim(1, x.rank()));
  PTERYX_ASSIGN(const size_t b, n.dim(2, x.rank()));
  if (x.empty()) return identity(x);
  return swapped(x, a, b);
}

Result<Source> t(const Node& n, size_t) {
  const Dims x = n.in(kX).dims;
  if (x.rank() < 2) return identity(x);
  return swapped(x, 0, 1);
}

Result<Source> expand(const Node& n, size_t) {
  const Dims x = n.in(kX).dims;
  const Dims own = contiguous_strides(x);
  PTERYX_ASSIGN(Dims size, n.ints(1));
  const auto refuse = [&] {
    return does_not_fit(
        n, fmt::format("size: x {} does not expand to {}", to_string(x), to_string(size)));
  };
  if (size.rank() < x.rank()) return refuse();
  const size_t lead = size.rank() - x.rank();
  Dims strides = Dims::filled(size.rank(), 0);
  for (size_t i = 0; i < size.rank(); ++i) {
    if (i < lead) {
      if (size[i] < 0) return refuse();
      continue;
    }
    if (size[i] == -1) size[i] = x[i - lead];
    if (size[i] < 0 || (x[i - lead] != 1 && x[i - lead] != size[i])) return refuse();
    if (x[i - lead] != 1) strides[i] = own[i - lead];
  }
  return from(size, strides);
}

Result<Source> flip(const Node& n, size_t) {
  Source s = identity(n.in(kX).dims);
  PTERYX_ASSIGN(const Dims list, n.ints(1));
  std::array<bool, kMaxRank> seen{};
  for (const int64_t dim : list) {
    PTERYX_ASSIGN(const size_t d, checked_dim(n, dim, s.dims.rank()));
    if (seen[d]) return bad(n, fmt::format("dims: {} names a dim twice", to_string(list)));
    seen[d] = true;
    if (s.dims.empty()) continue;
    s.base += (s.dims[d] - 1) * s.strides[d];
    s.strides[d] = -s.strides[d];
  }
  return s;
}

Result<Source> unfold(const Node& n, size_t) {
  const Dims x = n.in(kX).dims;
  PTERYX_ASSIGN(const size_t dim, n.dim(1, x.rank()));
  PTERYX_ASSIGN(const int64_t size, n.integer(2));
  PTERYX_ASSIGN(const int64_t step, n.integer(3));
  if (size < 0 || size > x[dim] || step < 1) {
    return does_not_fit(n, fmt::format("size {} and step {} do not fit the {} entries of dim {}",
                                       size, step, x[dim], dim));
  }
  if (x.rank() == kMaxRank) return n.unsupported(fmt::format("a result of rank {}", kMaxRank + 1));
  Source s = identity(x);
  const int64_t own = s.strides[dim];
  s.dims[dim] = (x[dim] - size) / step + 1;
  s.strides[dim] = own * step;
  s.dims.push_back(size);
  s.strides.push_back(own);
  s.result = s.dims;
  return s;
}

Result<Source> diagonal(const Node& n, size_t) {
  const Dims x = n.in(kX).dims;
  PTERYX_ASSIGN(int64_t offset, n.integer(1));
  PTERYX_ASSIGN(const size_t a, n.dim(2, x.rank()));
  PTERYX_ASSIGN(const size_t b, n.dim(3, x.rank()));
  if (a == b) return bad(n, fmt::format("dim1 and dim2 are both {}", a));
  offset = std::clamp(offset, -x[a], x[b]);
  Source s = identity(x);
  const int64_t length =
      std::min(x[a] - std::max<int64_t>(-offset, 0), x[b] - std::max<int64_t>(offset, 0));
  if (length > 0) s.base = offset >= 0 ? offset * s.strides[b] : -offset * s.strides[a];
  const int64_t step = s.strides[a] + s.strides[b];
  for (const size_t dim : {std::max(a, b), std::min(a, b)}) {
    s.dims.erase(dim);
    s.strides.erase(dim);
  }
  s.dims.push_back(std::max<int64_t>(length, 0));
  s.strides.push_back(step);
  s.result = s.dims;
  return s;
}

Result<Source> as_strided(const Node& n, size_t) {
  PTERYX_ASSIGN(const Dims size, n.ints(1));
  PTERYX_ASSIGN(const Dims stride, n.ints(2));
  PTERYX_ASSIGN(const int64_t base, n.integer_or(3, 0));
  const int64_t count = n.in(kX).numel();
  const auto total = checked_numel(size.span());
  bool inside = total.has_value() && size.rank() == stride.rank() && base >= 0;
  std::optional<int64_t> last = base;
  for (size_t i = 0; inside && *total > 0 && i < size.rank(); ++i) {
    const auto reach = checked_mul(size[i] - 1, stride[i]);
    last = reach ? checked_add(*last, *reach) : std::nullopt;
    inside = last.has_value() && stride[i] >= 0;
  }
  if (!inside || (*total > 0 && *last >= count)) {
    return does_not_fit(
        n, fmt::format("size {}, stride {} and storage_offset {} leave the {} elements of x",
                       to_string(size), to_string(stride), base, count));
  }
  return from(size, stride, base);
}

constexpr int64_t kMaxFactor = 1 << 15;

// [.., c*r*r, h, w] -> [.., c, h*r, w*r]
Result<Source> pixel_shuffle(const Node& n, size_t) {
  const Tensor x = n.in(kX);
  PTERYX_ASSIGN(const int64_t r, n.integer(1));
  const size_t k = x.rank() - 3;
  if (r < 1 || r > kMaxFactor || x.dims[k] % (r * r) != 0) {
    return does_not_fit(
        n, fmt::format("upscale_factor {} does not divide the {} channels of x", r, x.dims[k]));
  }
  const int64_t h = x.dims[k + 1];
  const int64_t w = x.dims[k + 2];
  const int64_t image = x.dims[k] * h * w;
  Source s;
  s.result = x.dims;
  s.result[k] /= r * r;
  s.result[k + 1] *= r;
  s.result[k + 2] *= r;
  s.dims = {image == 0 ? 0 : x.numel() / image, x.dims[k] / (r * r), h, r, w, r};
  s.strides = {image, r * r * h * w, w, r * h * w, 1, h * w};
  return s;
}

// [.., c, h*r, w*r] -> [.., c*r*r, h, w]
Result<Source> pixel_unshuffle(const Node& n, size_t) {
  const Tensor x = n.in(kX);
  PTERYX_ASSIGN(const int64_t r, n.integer(1));
  const size_t k = x.rank() - 3;
  if (r < 1 || r > kMaxFactor || x.dims[k + 1] % r != 0 || x.dims[k + 2] % r != 0) {
    return does_not_fit(
        n, fmt::format("downscale_factor {} does not divide the {} x {} pixels of x", r,
                       x.dims[k + 1], x.dims[k + 2]));
  }
  const int64_t width = x.dims[k + 2];
  const int64_t plane = x.dims[k + 1] * width;
  const int64_t image = x.dims[k] * plane;
  Source s;
  s.result = x.dims;
  s.result[k] *= r * r;
  s.result[k + 1] /= r;
  s.result[k + 2] /= r;
  s.dims = {image == 0 ? 0 : x.numel() / image, x.dims[k], r, r, x.dims[k + 1] / r, width / r};
  s.strides = {image, plane, width, 1, r * width, r};
  return s;
}

constexpr Arg kDimsArgs[] = {in("x"), ints("dims"), out("y")};
constexpr Arg kTwoDims[] = {in("x"), number("dim0"), number("dim1"), out("y")};
constexpr Arg kMatrix[] = {in("x", kAnyType, 0, 2), out("y")};
constexpr Arg kExpand[] = {in("x"), ints("size"), any("implicit"), out("y")};
constexpr Arg kUnfold[] = {in("x", kAnyType, 1), number("dimension"), number("size"),
                           number("step"), out("y")};
constexpr Arg kDiagonal[] = {in("x", kAnyType, 2), number("offset"), number("dim1"), number("dim2"),
                             out("y")};
constexpr Arg kStrided[] = {in("x"), ints("size"), ints("stride"),
                            optional_number("storage_offset"), out("y")};
constexpr Arg kPixels[] = {in("x", kAnyType, 3), number("factor"), out("y")};

constexpr MovementRow kRows[] = {
    {"aten.permute_copy.default",
     {"aten::permute_copy.out", "aten.permute.default"},
     kDimsArgs,
     permute},
    {"aten.transpose_copy.int", {"aten::transpose_copy.int_out"}, kTwoDims, transpose},
    {"aten.t_copy.default", {"aten::t_copy.out"}, kMatrix, t},
    {"aten.expand_copy.default", {"aten::expand_copy.out"}, kExpand, expand},
    {"aten.flip.default", {"aten::flip.out"}, kDimsArgs, flip},
    {"aten.unfold_copy.default", {"aten::unfold_copy.out"}, kUnfold, unfold},
    {"aten.diagonal_copy.default", {"aten::diagonal_copy.out"}, kDiagonal, diagonal},
    {"aten.as_strided_copy.default", {"aten::as_strided_copy.out"}, kStrided, as_strided},
    {"aten.pixel_shuffle.default", {"aten::pixel_shuffle.out"}, kPixels, pixel_shuffle},
    {"aten.pixel_unshuffle.default", {"aten::pixel_unshuffle.out"}, kPixels, pixel_unshuffle},
};

}  // namespace

std::span<const MovementRow> strided_rows() { return kRows; }

}  // namespace pteryx::ops
