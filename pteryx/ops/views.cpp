// Operators whose result is the same bytes under other dims. The session makes them aliases; where
// it cannot, they copy words.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/op.h"
#include "pteryx/ops/raw.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

enum Position { kX, kSize, kDim = kSize };

struct Row {
  std::string_view name;
  std::array<std::string_view, 2> spellings;
  std::span<const Arg> args;
  Result<Dims> (*dims)(const Node&);
};

Result<Dims> same(const Node& n) { return n.in(kX).dims; }

Status does_not_fit(const Node& n, std::string_view why) {
  return n.fail(Code::kInvalidArgument,
                fmt::format("x {} does not fit {} (at most {}): {}", to_string(n.in(kX).dims),
                            n.graph().label(n.out_id()), to_string(n.max_dims(n.out_id())), why));
}

// `bound` with dim d shrunk so that it holds `count` elements; nullopt if d alone cannot do it.
std::optional<Dims> shrink(const Dims& bound, size_t d, int64_t count) {
  int64_t rest = 1;
  for (size_t i = 0; i < bound.rank(); ++i) rest *= i == d ? 1 : bound[i];
  if (rest == 0 || count % rest != 0 || count / rest > bound[d]) return std::nullopt;
  Dims out = bound;
  out[d] = count / rest;
  return out;
}

// The dim of `bound` that holds the only dim of x below its bound: the one that spans the same
// stretch of memory.
std::optional<size_t> shrinking_dim(const Node& n, const Dims& bound) {
  const Dims live = n.in(kX).dims;
  const Dims max = n.max_dims(n.in(kX).id);
  std::optional<size_t> shrunk;
  for (size_t i = 0; i < live.rank(); ++i) {
    if (live[i] == max[i]) continue;
    if (shrunk) return std::nullopt;
    shrunk = i;
  }
  if (!shrunk) return std::nullopt;
  const int64_t from = contiguous_strides(max)[*shrunk];
  const Dims steps = contiguous_strides(bound);
  for (size_t d = 0; d < bound.rank(); ++d) {
    if (steps[d] <= from && steps[d] * bound[d] >= from * max[*shrunk]) return d;
  }
  return std::nullopt;
}

// The result's dims in the file, one of them shrunk to the live number of elements.
Result<Dims> fit_bound(const Node& n) {
  const Dims bound = n.max_dims(n.out_id());
  const int64_t count = n.in(kX).numel();
  if (numel(bound) == count) return bound;
  if (const auto d = shrinking_dim(n, bound)) {
    if (const auto dims = shrink(bound, *d, count)) return *dims;
  }
  std::optional<Dims> found;
  for (size_t d = 0; d < bound.rank(); ++d) {
    const auto dims = shrink(bound, d, count);
    if (!dims) continue;
    if (found) return does_not_fit(n, "more than one dim could shrink");
    found = dims;
  }
  if (!found)
    return does_not_fit(n, fmt::format("no single dim shrinks to give {} elements", count));
  return *found;
}

bool is_literal(const graph::Value& v) {
  return std::holds_alternative<graph::IntList>(v) || std::holds_alternative<int64_t>(v);
}

// The size list: live members evaluated, one -1 inferred. Literal lists may be stale: written at
// the bound.
Result<Dims> resized(const Node& n) {
  PTERYX_ASSIGN(Dims size, n.ints(kSize));
  const int64_t count = n.in(kX).numel();
  std::optional<size_t> inferred;
  for (size_t i = 0; i < size.rank(); ++i) {
    if (size[i] >= 0) continue;
    if (size[i] != -1 || inferred) {
      return n.fail(
          Code::kInvalidArgument,
          fmt::format("size: expected sizes and at most one -1, got {}", to_string(size)));
    }
    inferred = i;
  }
  if (inferred) size[*inferred] = 1;
  const auto total = checked_numel(size.span());
  if (!total)
    return n.fail(Code::kInvalidArgument, fmt::format("size: {} is too large", to_string(size)));
  if (inferred) {
    // Nothing says what -1 is beside a 0; PyTorch refuses it too, for x without elements as well.
    if (*total == 0 || count % *total != 0) {
      return n.fail(Code::kInvalidArgument,
                    fmt::format("size: the -1 of {} cannot be inferred from {} elements",
                                to_string(*n.ints(kSize)), count));
    }
    size[*inferred] = count / *total;
    return size;
  }
  if (*total == count) return size;
  if (is_literal(n.graph()[n.node().args[kSize]])) return fit_bound(n);
  return n.fail(Code::kInvalidArgument,
                fmt::format("size: {} has {} elements, x {} has {}", to_string(size), *total,
                            to_string(n.in(kX).dims), count));
}

// Removes dims of size 1 from those marked. A dim that is 1 only in this run stays: the file's rank
// decides.
Result<Dims> squeezed(const Node& n, const std::array<bool, kMaxRank>& marked) {
  const Tensor x = n.in(kX);
  const Dims max = n.max_dims(x.id);
  const size_t rank = n.max_dims(n.out_id()).rank();
  Dims kept;
  Dims kept_live;
  for (size_t i = 0; i < x.rank(); ++i) {
    if (!marked[i] || max[i] != 1) kept.push_back(x.dims[i]);
    if (!marked[i] || x.dims[i] != 1) kept_live.push_back(x.dims[i]);
  }
  if (kept.rank() == rank) return kept;
  if (kept_live.rank() == rank) return kept_live;
  return n.fail(Code::kInvalidArgument,
                fmt::format("squeezing x {} cannot give rank {}", to_string(x.dims), rank));
}

Result<Dims> squeeze_all(const Node& n) {
  std::array<bool, kMaxRank> marked;
  marked.fill(true);
  return squeezed(n, marked);
}

Result<Dims> squeeze_dims(const Node& n) {
  const size_t rank = n.in(kX).rank();
  PTERYX_ASSIGN(const Dims list, n.ints(kDim));
  std::array<bool, kMaxRank> marked{};
  for (const int64_t dim : list) {
    const auto d = normalize_dim(dim, rank);
    if (!d.ok()) return n.fail(Code::kInvalidProgram, d.status().message());
    marked[*d] = true;
  }
  return squeezed(n, marked);
}

Result<Dims> unsqueeze(const Node& n) {
  Dims dims = n.in(kX).dims;
  if (dims.rank() == kMaxRank)
    return n.unsupported(fmt::format("a result of rank {}", kMaxRank + 1));
  PTERYX_ASSIGN(const size_t at, n.dim(kDim, dims.rank() + 1));
  dims.insert(at, 1);
  return dims;
}

constexpr Arg kPlain[] = {in("x"), out("y")};
constexpr Arg kClone[] = {in("x"), any("memory_format"), out("y")};
constexpr Arg kCloneOrder[] = {in("x"), any("non_blocking"), any("dim_order"), out("y")};
constexpr Arg kSized[] = {in("x"), ints("size"), out("y")};
constexpr Arg kDims[] = {in("x"), ints("dim"), out("y")};
constexpr Arg kOneDim[] = {in("x"), number("dim"), out("y")};

constexpr Row kRows[] = {
    {"et_vk.prepack.default", {}, kPlain, same},
    {"aten.clone.default", {"aten::clone.out"}, kClone, same},
    {"dim_order_ops._clone_dim_order.default",
     {"dim_order_ops::_clone_dim_order.out"},
     kCloneOrder,
     same},
    {"aten.alias_copy.default", {"aten::alias_copy.out"}, kPlain, same},
    {"aten.detach_copy.default", {"aten::detach_copy.out"}, kPlain, same},
    {"aten.lift_fresh_copy.default", {"aten::lift_fresh_copy.out"}, kPlain, same},
    {"et_copy._h2d_copy.default", {"et_copy::_h2d_copy.out"}, kPlain, same},
    {"et_copy._d2h_copy.default", {"et_copy::_d2h_copy.out"}, kPlain, same},
    {"aten.view_copy.default", {"aten::view_copy.out", "aten.view.default"}, kSized, resized},
    {"aten._unsafe_view.default",
     {"aten::_unsafe_view.out", "aten.reshape.default"},
     kSized,
     resized},
    {"executorch_prim.et_view.default", {"executorch_prim::et_view.default"}, kSized, resized},
    {"aten.squeeze_copy.default", {"aten::squeeze_copy.out"}, kPlain, squeeze_all},
    {"aten.squeeze_copy.dim", {"aten::squeeze_copy.dim_out"}, kOneDim, squeeze_dims},
    {"aten.squeeze_copy.dims", {"aten::squeeze_copy.dims_out"}, kDims, squeeze_dims},
    {"aten.unsqueeze_copy.default", {"aten::unsqueeze_copy.out"}, kOneDim, unsqueeze},
    {graph::kViewOp, {}, kPlain, fit_bound},
};

Status shape(const Node& n, Shapes& s) {
  const Tensor x = n.in(kX);
  const Tensor y = n.out();
  if (x.dtype != y.dtype)
    return n.malformed(n.def().args.size() - 1, "type", name(x.dtype), name(y.dtype));
  PTERYX_ASSIGN(const Dims dims, static_cast<const Row*>(n.def().row)->dims(n));
  return s.set(dims);
}

Status plan(const Node& n, Plan& p) { return plan_raw_copy(n, p, n.in(kX), n.out()); }

Status cpu(const Node& n, const Host& h) {
  cpu_raw_copy(h.host(n.in(kX).id), h.host(n.out_id()));
  return {};
}

}  // namespace

void add_views(std::vector<OpDef>& table) {
  for (const Row& r : kRows) {
    table.push_back({.name = r.name,
                     .spellings = r.spellings,
                     .args = r.args,
                     .shape = shape,
                     .plan = plan,
                     .cpu = cpu,
                     .op_class = OpClass::kView,
                     .row = &r});
  }
}

}  // namespace pteryx::ops
