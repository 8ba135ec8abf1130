// Results put together from pieces of several tensors: cat, stack, and slices written into a copy
// of a tensor.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/shaders/join.h"

#include <algorithm>
#include <cstring>

#include "pteryx/ops/few.h"
#include "pteryx/ops/float_rows.h"
#include "pteryx/ops/movement.h"
#include "pteryx/ops/op.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

constexpr size_t kMaxPieces = 7;  // of one dispatch: with y, the 8 storage buffers every device has

// A run of each row of the result: `length` elements that start at offset + row * stride in the
// source.
struct Piece {
  Tensor from;
  int64_t length = 0;
  int64_t stride = 0;
  int64_t offset = 0;
};
struct Join {
  int64_t rows = 1;
  int64_t row = 0;  // elements of a row: the sum of the lengths
  Few<Piece, 8> pieces;

  void add(const Piece& p) {
    if (p.length == 0) return;
    pieces.push_back(p);
    row += p.length;
  }
};

struct Row {
  std::string_view name;
  std::array<std::string_view, 1> spellings;
  std::span<const Arg> args;
  Status (*shape)(const Node&, Shapes&);
  Result<Join> (*join)(const Node&);
  bool (*gpu)(const Node&);
};

int64_t product(const Dims& dims, size_t first, size_t last) {
  int64_t n = 1;
  for (size_t i = first; i < last; ++i) n *= dims[i];
  return n;
}

// ---- cat and stack

enum CatPosition { kTensors, kCatDim };

// The old spelling of "nothing": a [0] tensor goes with anything.
bool is_nothing(const Tensor& t) { return t.rank() == 1 && t.dims[0] == 0; }

Result<Tensor> member(const Node& n, size_t i) {
  const auto t = n.list_item(kTensors, i);
  if (!t) return n.fail(Code::kInvalidProgram, fmt::format("tensors: member {} is None", i));
  return *t;
}

Status cat_shape(const Node& n, Shapes& s) {
  std::optional<Dims> dims;
  size_t dim = 0;
  for (size_t i = 0; i < n.list_size(kTensors); ++i) {
    PTERYX_ASSIGN(const Tensor t, member(n, i));
    if (is_nothing(t)) continue;
    if (!dims) {
      dims = t.dims;
      PTERYX_ASSIGN(dim, n.dim(kCatDim, t.rank()));
      if (t.dims.empty())
        return n.fail(Code::kInvalidProgram, "tensors: member 0 has no dims to join along");
      continue;
    }
    Dims expected = *dims;
    if (t.rank() == expected.rank()) expected[dim] = t.dims[dim];
    if (t.dims != expected) {
      return n.fail(Code::kInvalidArgument,
                    fmt::format("tensors: member {} {} does not go with {} along dim {}", i,
                                to_string(t.dims), to_string(*dims), dim));
    }
    (*dims)[dim] += t.dims[dim];
  }
  if (n.list_size(kTensors) == 0)
    return n.fail(Code::kInvalidProgram, "tensors: the list is empty");
  return s.set(dims.value_or(Dims{0}));
}

Result<Join> cat(const Node& n) {
  const Dims y = n.out().dims;
  if (numel(y) == 0) return Join{.rows = 0};
  PTERYX_ASSIGN(const size_t dim, n.dim(kCatDim, y.rank()));
  Join j{.rows = product(y, 0, dim)};
  for (size_t i = 0; i < n.list_size(kTensors); ++i) {
    PTERYX_ASSIGN(const Tensor t, member(n, i));
    const int64_t length = is_nothing(t) ? 0 : product(t.dims, dim, t.rank());
    j.add({t, length, length, 0});
  }
  return j;
}

Status stack_shape(const Node& n, Shapes& s) {
  if (n.list_size(kTensors) == 0)
    return n.fail(Code::kInvalidProgram, "tensors: the list is empty");
  PTERYX_ASSIGN(const Tensor first, member(n, 0));
  if (first.rank() == kMaxRank)
    return n.unsupported(fmt::format("a result of rank {}", kMaxRank + 1));
  PTERYX_ASSIGN(const size_t dim, n.dim(kCatDim, first.rank() + 1));
  for (size_t i = 1; i < n.list_size(kTensors); ++i) {
    PTERYX_ASSIGN(const Tensor t, member(n, i));
    if (t.dims != first.dims) {
      return n.fail(Code::kInvalidArgument,
                    fmt::format("tensors: member {} is {}, member 0 is {}", i, to_string(t.dims),
                                to_string(first.dims)));
    }
  }
  Dims dims = first.dims;
  dims.insert(dim, static_cast<int64_t>(n.list_size(kTensors)));
  return s.set(dims);
}

Result<Join> stack(const Node& n) {
  const Dims y = n.out().dims;
  PTERYX_ASSIGN(const size_t dim, n.dim(kCatDim, y.rank()));
  Join j{.rows = product(y, 0, dim)};
  const int64_t length = product(y, dim + 1, y.rank());
  for (size_t i = 0; i < n.list_size(kTensors); ++i) {
    PTERYX_ASSIGN(const Tensor t, member(n, i));
    j.add({t, length, length, 0});
  }
  return j;
}

bool cat_gpu(const Node& n) {
  for (size_t i = 0; i < n.list_size(kTensors); ++i) {
    const auto t = n.list_item(kTensors, i);
    if (t && t->dtype != n.out().dtype) return false;
  }
  return true;
}

// ---- a slice of x replaced by src

enum ScatterPosition { kX, kSrc, kDim, kStart, kIndex = kStart };

// Rows of y: x before the slice, src, x behind it. A step other than 1 makes a piece of every
// entry.
Join replaced(const Node& n, size_t dim, const SliceRange& range) {
  const Tensor x = n.in(kX);
  const Tensor src = n.in(kSrc);
  const int64_t inner = product(x.dims, dim + 1, x.rank());
  const int64_t row = x.dims[dim] * inner;
  const int64_t run = range.step == 1 ? range.length : 1;
  Join j{.rows = product(x.dims, 0, dim)};
  int64_t at = 0;
  for (int64_t k = 0; k < range.length; k += run) {
    const int64_t start = (range.start + k * range.step) * inner;
    j.add({x, start - at, row, at});
    j.add({src, run * inner, range.length * inner, k * inner});
    at = start + run * inner;
  }
  j.add({x, row - at, row, at});
  return j;
}

Status slice_scatter_shape(const Node& n, Shapes& s) {
  Dims dims = n.in(kX).dims;
  PTERYX_ASSIGN(const size_t dim, n.dim(kDim, dims.rank()));
  PTERYX_ASSIGN(const SliceRange range, slice_range(n, kStart, dims[dim]));
  PTERYX_TRY(s.set(dims));
  dims[dim] = range.length;
  return n.expect(kSrc, "shape", dims, n.in(kSrc).dims);
}

Result<Join> slice_scatter(const Node& n) {
  const Dims x = n.in(kX).dims;
  PTERYX_ASSIGN(const size_t dim, n.dim(kDim, x.rank()));
  PTERYX_ASSIGN(const SliceRange range, slice_range(n, kStart, x[dim]));
  return replaced(n, dim, range);
}

Status select_scatter_shape(const Node& n, Shapes& s) {
  Dims dims = n.in(kX).dims;
  PTERYX_ASSIGN(const size_t dim, n.dim(kDim, dims.rank()));
  PTERYX_ASSIGN([[maybe_unused]] const int64_t index, select_index(n, kIndex, dims[dim]));
  PTERYX_TRY(s.set(dims));
  dims.erase(dim);
  return n.expect(kSrc, "shape", dims, n.in(kSrc).dims);
}

Result<Join> select_scatter(const Node& n) {
  const Dims x = n.in(kX).dims;
  PTERYX_ASSIGN(const size_t dim, n.dim(kDim, x.rank()));
  PTERYX_ASSIGN(const int64_t index, select_index(n, kIndex, x[dim]));
  return replaced(n, dim, {index, 1, 1});
}

bool select_gpu(const Node& n) {
  return n.in(kX).dtype == n.out().dtype && n.in(kSrc).dtype == n.out().dtype;
}
bool slice_gpu(const Node& n) {
  const auto step = n.integer_or(kStart + 2, 1);
  return select_gpu(n) && step.ok() && *step == 1;
}

// ---- the kernel

const Row& row(const Node& n) { return *static_cast<const Row*>(n.def().row); }

// All pieces, and where they lie in their sources, are whole units of so many elements.
bool comes_in(int64_t unit, const Join& j) {
  return std::ranges::all_of(j.pieces, [&](const Piece& piece) {
    return piece.length % unit == 0 && piece.stride % unit == 0 && piece.offset % unit == 0;
  });
}

// Pieces [first, first + count) of the join, whose rows start `start` elements into the rows of y.
Status dispatch(const Node& n, Plan& p, const Join& j, std::span<const Piece> pieces,
                int64_t start) {
  const Tensor y = n.out();
  const auto bytes = static_cast<int64_t>(size_bytes(y.dtype));
  const bool wide = comes_in(16 / bytes, j);
  const int64_t unit = wide ? 16 / bytes : 1;  // what params count
  const int64_t lanes = wide ? 1 : 4 / bytes;
  const int64_t row = j.row / unit;
  shaders::JoinParams params{.n = u32(y.numel() / unit), .row = u32(row)};
  std::vector<Bind> bind;
  static constexpr std::string_view kNames[kMaxPieces] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6"};
  start /= unit;
  int64_t end = start;
  for (size_t k = 0; k < pieces.size(); ++k) {
    params.starts[k] = u32(end);
    params.strides[k] = u32(pieces[k].stride / unit);
    params.offsets[k] = u32(pieces[k].offset / unit);
    end += pieces[k].length / unit;
    bind.push_back({kNames[k], pieces[k].from});
  }
  params.starts[pieces.size()] = u32(end);
  bind.push_back({"y", y});
  // Words that hold elements of one row only can be walked row by row; others are visited whole.
  int64_t items = words(y.numel(), y.dtype);
  params.block = u32(std::max<int64_t>(items, 1));
  if (lanes == 1) {
    items = j.rows * (end - start);
    params.base = u32(start);
    params.block = u32(end - start);
    params.block_stride = u32(row);
  } else if (j.rows == 1) {
    params.base = u32(start / lanes);
    items = (end - 1) / lanes - start / lanes + 1;
    params.block = u32(items);
  }
  params.items = u32(items);
  return p.dispatch(
      n, {.shader = &shaders::join,
          .options = {{"pieces", static_cast<int64_t>(pieces.size())}, {"wide", wide ? 1 : 0}},
          .variant = fmt::format("{}", pieces.size()),
          .bind = std::move(bind),
          .params = bytes_of(params),
          .grid = per_element(items, p.caps())});
}

Status plan(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Join j, row(n).join(n));
  if (j.rows == 0) return {};
  const std::span<const Piece> pieces(j.pieces);
  int64_t start = 0;
  for (size_t k = 0; k < pieces.size(); k += kMaxPieces) {
    const auto some = pieces.subspan(k, std::min(kMaxPieces, pieces.size() - k));
    PTERYX_TRY(dispatch(n, p, j, some, start));
    for (const Piece& piece : some) start += piece.length;
  }
  return {};
}

Status cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const Join j, row(n).join(n));
  const HostTensor y = h.host(n.out_id());
  int64_t start = 0;
  for (const Piece& piece : j.pieces) {
    const HostTensor x = h.host(piece.from.id);
    for (int64_t r = 0; r < j.rows; ++r) {
      for (int64_t c = 0; c < piece.length; ++c) {
        y.copy(r * j.row + start + c, x, r * piece.stride + piece.offset + c);
      }
    }
    start += piece.length;
  }
  return {};
}

Result<bool> fast(const Node& n, const Host& h, CpuContext& c) {
  if (c.dry_run()) return true;  // takes no memory
  PTERYX_ASSIGN(const Join j, row(n).join(n));
  const HostTensor y = h.host(n.out_id());
  if (std::ranges::any_of(j.pieces, [&](const Piece& p) { return p.from.dtype != y.dtype; }))
    return false;
  const size_t element = size_bytes(y.dtype);
  const auto bytes = [&](int64_t elements) { return static_cast<size_t>(elements) * element; };
  int64_t start = 0;
  for (const Piece& piece : j.pieces) {
    const std::byte* const from = h.host(piece.from.id).data + bytes(piece.offset);
    std::byte* const to = y.data + bytes(start);
    const size_t length = bytes(piece.length);
    for_parts(c, static_cast<size_t>(j.rows), 4 * kPartElements / length,
              [&](size_t begin, size_t end) {
                for (size_t r = begin; r < end; ++r)
                  std::memcpy(to + r * bytes(j.row), from + r * bytes(piece.stride), length);
              });
    start += piece.length;
  }
  return true;
}

Status shape(const Node& n, Shapes& s) { return row(n).shape(n, s); }
bool gpu(const Node& n) { return row(n).gpu(n); }

constexpr Arg kCat[] = {list_in("tensors"), number("dim"), out("y")};
constexpr Arg kSliceScatter[] = {in("x", kAnyType, 1),
                                 in("src"),
                                 number("dim"),
                                 optional_number("start"),
                                 optional_number("end"),
                                 optional_number("step"),
                                 out("y")};
constexpr Arg kSelectScatter[] = {in("x", kAnyType, 1), in("src"), number("dim"), number("index"),
                                  out("y")};

constexpr Row kRows[] = {
    {"aten.cat.default", {"aten::cat.out"}, kCat, cat_shape, cat, cat_gpu},
    {"aten.stack.default", {"aten::stack.out"}, kCat, stack_shape, stack, cat_gpu},
    {"aten.slice_scatter.default",
     {"aten::slice_scatter.out"},
     kSliceScatter,
     slice_scatter_shape,
     slice_scatter,
     slice_gpu},
    {"aten.select_scatter.default",
     {"aten::select_scatter.out"},
     kSelectScatter,
     select_scatter_shape,
     select_scatter,
     select_gpu},
};

}  // namespace

void add_join(std::vector<OpDef>& table) {
  for (const Row& r : kRows) {
    table.push_back({.name = r.name,
                     .spellings = r.spellings,
                     .args = r.args,
                     .shape = shape,
                     .plan = plan,
                     .gpu = gpu,
                     .cpu = cpu,
                     .fast = fast,
                     .row = &r});
  }
}

}  // namespace pteryx::ops
