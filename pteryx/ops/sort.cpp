// Order along a dim: sort, argsort, topk. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/shaders/sort.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "pteryx/ops/op.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

constexpr size_t kX = 0;
constexpr size_t kNone = 0;  // position of an argument that an op does not have

// Positions of the arguments, kNone where there is none.
struct Row {
  std::string_view name;
  std::array<std::string_view, 1> spellings;
  std::span<const Arg> args;
  size_t dim;
  size_t descending;
  size_t k;
  bool values;  // results are values and indices; else indices alone
};

const Row& row(const Node& n) { return *static_cast<const Row*>(n.def().row); }

struct Order {
  int64_t outer = 1;
  int64_t extent = 1;
  int64_t inner = 1;
  int64_t count = 1;  // entries of the result
  bool descending = false;
  Dims result;
};
Result<Order> order(const Node& n) {
  const Row& r = row(n);
  Order o{.result = n.in(kX).dims};
  PTERYX_ASSIGN(const size_t dim, n.dim(r.dim, o.result.rank()));
  for (size_t d = 0; d < o.result.rank(); ++d)
    (d < dim ? o.outer : d == dim ? o.extent : o.inner) *= o.result[d];
  o.descending = n.flag(r.descending);
  o.count = o.extent;
  if (r.k == kNone) return o;
  PTERYX_ASSIGN(o.count, n.integer(r.k));
  if (o.count < 0 || o.count > o.extent) {
    return n.fail(Code::kInvalidArgument, fmt::format("k: {} of {} elements", o.count, o.extent));
  }
  if (!o.result.empty()) o.result[dim] = o.count;
  return o;
}

// The results there are: of a pair, either may be unwanted.
std::optional<Tensor> result(const Node& n, size_t i) {
  const ValueId id = n.out_id(i);
  if (id == graph::kNoValue || n.graph().tensor(id) == nullptr) return std::nullopt;
  return n.tensor(id);
}
std::optional<Tensor> values_of(const Node& n) {
  return row(n).values ? result(n, 0) : std::nullopt;
}
std::optional<Tensor> indices_of(const Node& n) { return result(n, row(n).values ? 1 : 0); }

Status shape(const Node& n, Shapes& s) {
  PTERYX_ASSIGN(const Order o, order(n));
  for (size_t i = 0; i < n.out_count(); ++i) PTERYX_TRY(s.set(i, o.result));
  return {};
}

// Every element looks at its whole row: right for rows that are not long.
constexpr int64_t kLongestOnGpu = 8192;

bool gpu(const Node& n) {
  const Dims max = n.max_dims(n.in(kX).id);
  const auto dim = n.dim(row(n).dim, max.rank());
  if (!dim.ok()) return false;
  return max.empty() || max[*dim] <= kLongestOnGpu;
}

Status plan(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Order o, order(n));
  const Tensor x = n.in(kX);
  const auto values = values_of(n);
  const auto indices = indices_of(n);
  std::vector<Bind> bind = {{"x", x}};
  if (values) bind.push_back({"values", *values});
  if (indices) bind.push_back({"indices", *indices});
  if (o.count == 0 || bind.size() == 1) return {};
  const shaders::SortParams params{
      .n = u32(x.numel()), .extent = u32(o.extent), .inner = u32(o.inner), .count = u32(o.count)};
  return p.dispatch(n, {.shader = &shaders::sort,
                        .options = {{"descending", o.descending ? 1 : 0},
                                    {"has_values", values ? 1 : 0},
                                    {"has_indices", indices ? 1 : 0}},
                        .variant = o.descending ? "descending" : "ascending",
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .grid = per_element(x.numel(), p.caps())});
}

// Is element i before element j? NaN is the largest of all.
bool before(const HostTensor& x, int64_t i, int64_t j, bool descending) {
  if (!is_float(x.dtype))
    return descending ? x.integer(i) > x.integer(j) : x.integer(i) < x.integer(j);
  const double a = x.number(descending ? j : i);
  const double b = x.number(descending ? i : j);
  return std::isnan(b) ? !std::isnan(a) : a < b;
}

Status cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const Order o, order(n));
  const HostTensor x = h.host(n.in(kX).id);
  const auto values = values_of(n);
  const auto indices = indices_of(n);
  std::vector<int64_t> places(static_cast<size_t>(o.extent));
  for (int64_t r = 0; r < o.outer * o.inner; ++r) {
    const int64_t c = r % o.inner;
    const int64_t first = (r / o.inner) * o.extent * o.inner + c;
    std::iota(places.begin(), places.end(), 0);
    std::stable_sort(places.begin(), places.end(), [&](int64_t i, int64_t j) {
      return before(x, first + i * o.inner, first + j * o.inner, o.descending);
    });
    for (int64_t k = 0; k < o.count; ++k) {
      const int64_t at = ((r / o.inner) * o.count + k) * o.inner + c;
      const int64_t from = places[static_cast<size_t>(k)];
      if (values) h.host(values->id).copy(at, x, first + from * o.inner);
      if (indices) h.host(indices->id).put_integer(at, from);
    }
  }
  return {};
}

constexpr Arg kSort[] = {in("x"), number("dim"), number("descending"),
                         out_values_and_indices("values_indices")};
constexpr Arg kStableSort[] = {in("x"), any("stable"), number("dim"), number("descending"),
                               out_values_and_indices("values_indices")};
constexpr Arg kArgsort[] = {in("x"), number("dim"), number("descending"), index_out("indices")};
constexpr Arg kStableArgsort[] = {in("x"), any("stable"), number("dim"), number("descending"),
                                  index_out("indices")};
constexpr Arg kTopk[] = {in("x"),       number("k"),
                         number("dim"), number("largest"),
                         any("sorted"), out_values_and_indices("values_indices")};

constexpr Row kRows[] = {
    {"aten.sort.default", {"aten::sort.values"}, kSort, 1, 2, kNone, true},
    {"aten.sort.stable", {"aten::sort.values_stable"}, kStableSort, 2, 3, kNone, true},
    {"aten.argsort.default", {"aten::argsort.out"}, kArgsort, 1, 2, kNone, false},
    {"aten.argsort.stable", {"aten::argsort.stable_out"}, kStableArgsort, 2, 3, kNone, false},
    {"aten.topk.default", {"aten::topk.values"}, kTopk, 2, 3, 1, true},
};

}  // namespace

void add_sort(std::vector<OpDef>& table) {
  for (const Row& r : kRows) {
    table.push_back({.name = r.name,
                     .spellings = r.spellings,
                     .args = r.args,
                     .shape = shape,
                     .plan = plan,
                     .gpu = gpu,
                     .cpu = cpu,
                     .row = &r});
  }
}

}  // namespace pteryx::ops
