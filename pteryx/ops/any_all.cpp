// any and all, over some dims or all of them. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/shaders/any_all.h"

#include "pteryx/ops/op.h"
#include "pteryx/ops/strided.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

constexpr size_t kX = 0;

struct Row {
  std::string_view name;
  std::array<std::string_view, 1> spellings;
  bool any;    // else all
  bool whole;  // else over the dims of an argument
};

const Row& row(const Node& n) { return *static_cast<const Row*>(n.def().row); }

// x split into the dims that stay and those that are folded.
struct Split {
  Dims result;
  Dims y_strides;  // over the dims of x; 0 where folded
  Dims kept;
  Dims kept_strides;
  Dims folded;
  Dims folded_strides;
};
Result<Split> split(const Node& n) {
  const Dims x = n.in(kX).dims;
  const bool whole = row(n).whole;
  std::array<bool, kMaxRank> marked;
  marked.fill(true);
  const bool keep = !whole && n.flag(2);
  if (!whole) {
    PTERYX_ASSIGN(const Dims dims, n.ints(1));
    if (!dims.empty()) marked.fill(false);
    for (const int64_t dim : dims) {
      const auto d = normalize_dim(dim, x.rank());
      if (!d.ok()) return n.fail(Code::kInvalidProgram, d.status().message());
      marked[*d] = true;
    }
  }
  Split s;
  const Dims own = contiguous_strides(x);
  for (size_t d = 0; d < x.rank(); ++d) {
    if (!marked[d] || keep) s.result.push_back(marked[d] ? 1 : x[d]);
    (marked[d] ? s.folded : s.kept).push_back(x[d]);
    (marked[d] ? s.folded_strides : s.kept_strides).push_back(own[d]);
  }
  const Dims steps = contiguous_strides(s.kept);
  size_t k = 0;
  for (size_t d = 0; d < x.rank(); ++d) s.y_strides.push_back(marked[d] ? 0 : steps[k++]);
  return s;
}

Status shape(const Node& n, Shapes& s) {
  PTERYX_ASSIGN(const Split split_, split(n));
  return s.set(split_.result);
}

Status plan(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Split s, split(n));
  const Tensor y = n.out();
  const Walk kept = merge_dims(s.kept, std::span(&s.kept_strides, 1));
  const Walk folded = merge_dims(s.folded, std::span(&s.folded_strides, 1));
  const shaders::AnyAllParams params{
      .kept = packed_dims(kept.dims),
      .kept_strides = packed_strides(kept.strides[0]),
      .folded = packed_dims(folded.dims),
      .folded_strides = packed_strides(folded.strides[0]),
      .n = u32(y.numel()),
      .kept_first = u32(static_cast<int64_t>(kMaxRank - kept.dims.rank())),
      .folded_first = u32(static_cast<int64_t>(kMaxRank - folded.dims.rank())),
      .count = u32(numel(s.folded))};
  return p.dispatch(n, {.shader = &shaders::any_all,
                        .options = {{"any_of", row(n).any ? 1 : 0}},
                        .variant = row(n).any ? "any" : "all",
                        .bind = {{"x", n.in(kX)}, {"y", y}},
                        .params = bytes_of(params),
                        .grid = per_group(words(y.numel(), y.dtype), p.caps())});
}

Status cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const Split s, split(n));
  const HostTensor x = h.host(n.in(kX).id);
  const HostTensor y = h.host(n.out_id());
  const bool any_of = row(n).any;
  std::vector<bool> truth(static_cast<size_t>(y.numel()), !any_of);
  for_each_index<1>(x.dims, {s.y_strides}, [&](int64_t i, const std::array<int64_t, 1>& at) {
    const bool v = x.number(i) != 0.0;
    if (v == any_of) truth[static_cast<size_t>(at[0])] = any_of;
  });
  for (size_t k = 0; k < truth.size(); ++k)
    y.put_integer(static_cast<int64_t>(k), truth[k] ? 1 : 0);
  return {};
}

constexpr Arg kWhole[] = {in("x"), out("y")};
constexpr Arg kDims[] = {in("x"), optional_ints("dim"), number("keepdim"), out("y")};

constexpr Row kRows[] = {
    {"aten.any.default", {"aten::any.all_out"}, true, true},
    {"aten.any.dim", {"aten::any.out"}, true, false},
    {"aten.any.dims", {"aten::any.dims_out"}, true, false},
    {"aten.all.default", {"aten::all.all_out"}, false, true},
    {"aten.all.dim", {"aten::all.out"}, false, false},
    {"aten.all.dims", {"aten::all.dims_out"}, false, false},
};

}  // namespace

void add_any_all(std::vector<OpDef>& table) {
  for (const Row& r : kRows) {
    table.push_back({.name = r.name,
                     .spellings = r.spellings,
                     .args = r.whole ? std::span<const Arg>(kWhole) : std::span<const Arg>(kDims),
                     .shape = shape,
                     .plan = plan,
                     .cpu = cpu,
                     .row = &r});
  }
}

}  // namespace pteryx::ops
