// Softmax and log-softmax over one dim, in f32 with the largest value subtracted.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/shaders/softmax.h"

#include <cmath>

#include "pteryx/ops/fold.h"
#include "pteryx/ops/op.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

enum Position { kX, kDim };

struct Row {
  std::string_view name;
  std::string_view spelling;
  std::string_view result;  // WGSL over x, peak and total
  bool log;
};
constexpr Row kRows[] = {
    {"aten._softmax.default", "aten::_softmax.out", "decay(x - peak) / total", false},
    {"aten._log_softmax.default", "aten::_log_softmax.out", "(x - peak) - log(total)", true},
};

const Row& row(const Node& n) { return *static_cast<const Row*>(n.def().row); }

struct Extents {
  int64_t outer = 1;
  int64_t length = 1;
  int64_t inner = 1;
};
Result<Extents> extents(const Node& n) {
  const Tensor x = n.in(kX);
  PTERYX_ASSIGN(const size_t dim, n.dim(kDim, x.rank()));
  Extents e;
  for (size_t i = 0; i < x.rank(); ++i)
    (i < dim ? e.outer : (i == dim ? e.length : e.inner)) *= x.dims[i];
  return e;
}

Status shape(const Node& n, Shapes& s) {
  PTERYX_ASSIGN([[maybe_unused]] const size_t dim, n.dim(kDim, n.in(kX).rank()));
  return s.set(n.in(kX).dims);
}

template <FoldRoute R>
Status plan(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Extents e, extents(n));
  const int64_t rows = e.length == 0 ? 0 : e.outer * e.inner;
  const Tensor y = n.out();
  const Fold f = make_fold(R, e.length, 1024, p.caps());
  const Access access = e.inner == 1 ? row_access(y.dtype, e.length) : row_access(y.dtype, 1);
  const shaders::SoftmaxParams params{
      .rows = u32(rows), .length = u32(e.length), .inner = u32(e.inner)};
  const std::string prelude =
      fmt::format("fn result(x: f32, peak: f32, total: f32) -> f32 {{ return {}; }}\n{}{}",
                  row(n).result, row_access_prelude(access), f.prelude());
  return p.dispatch(n, {.shader = &shaders::softmax,
                        .variant = row(n).log ? "log" : "",
                        .prelude = prelude,
                        .bind = {{"x", n.in(kX)}, {"y", y, access}},
                        .params = bytes_of(params),
                        .grid = f.grid(rows, p.caps()),
                        .subgroups = f.block != 0});
}

// Teams read neighbouring items of a row; lone invocations read neighbouring rows where those are
// neighbours.
bool suits_teams(const Node& n, const gpu::Caps& /*caps*/) {
  const auto e = extents(n);
  return e.ok() && e->length > 8 && (e->inner < 16 || e->outer * e->inner < 64);
}

constexpr Route kRoutes[] = {
    {"subgroup", fits_subgroup_fold, plan<FoldRoute::kSubgroup>, suits_teams},
    {"workgroup", nullptr, plan<FoldRoute::kTree>, suits_teams},
    {"serial", nullptr, plan<FoldRoute::kSerial>},
};

Status cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const Extents e, extents(n));
  const HostTensor x = h.host(n.in(kX).id);
  const HostTensor y = h.host(n.out_id());
  for (int64_t r = 0; r < e.outer * e.inner && e.length > 0; ++r) {
    const int64_t base = r / e.inner * e.inner * e.length + r % e.inner;
    double peak = x.number(base);
    for (int64_t k = 1; k < e.length; ++k) peak = std::fmax(peak, x.number(base + k * e.inner));
    double total = 0;
    for (int64_t k = 0; k < e.length; ++k) total += std::exp(x.number(base + k * e.inner) - peak);
    for (int64_t k = 0; k < e.length; ++k) {
      const double d = x.number(base + k * e.inner) - peak;
      y.put(base + k * e.inner, row(n).log ? d - std::log(total) : std::exp(d) / total);
    }
  }
  return {};
}

constexpr Arg kArgs[] = {in("x", kFloats), number("dim"), any("half_to_float"), out("y", kFloats)};

}  // namespace

void add_softmax(std::vector<OpDef>& table) {
  for (const Row& r : kRows) {
    table.push_back({.name = r.name,
                     .spellings = std::span(&r.spelling, 1),
                     .args = kArgs,
                     .shape = shape,
                     .plan = plan_by_route,
                     .cpu = cpu,
                     .family = "softmax",
                     .routes = kRoutes,
                     .row = &r});
  }
}

}  // namespace pteryx::ops
