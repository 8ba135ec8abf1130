// Linear layers with float weights that take in what is around them: a matrix product, and around
// it what quantised layers have there as well.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <bit>

#include "pteryx/ops/fold.h"
#include "pteryx/ops/matmul/routes.h"
#include "pteryx/ops/quant/parts.h"
#include "pteryx/ops/shaders/linear_gemv.h"

namespace pteryx::ops {
namespace {

using qlinear::plan_around;

MatMul product_of(const QLinear& d) {
  MatMul m{.m = d.m,
           .n = d.n,
           .k = d.k,
           .a = {d.x, d.m * d.k, d.k, 1},
           .b = {d.weight, 0, 1, d.k},
           .add = {},
           .scale = {},
           .residual = d.residual,
           .y = d.y};
  if (d.bias) m.add = Matrix{*d.bias, 0, 0, 1};
  return m;
}

template <auto F>
Status multiply(const Node& n, Plan& p,
                QLinear d) {  // NOLINT(performance-unnecessary-value-param)
  if (d.more.empty()) return F(n, p, product_of(d));
  QLinear sums = d;
  sums.y = p.scratch(DType::kF32, {d.m, d.n});
  sums.bias.reset();
  sums.residual.reset();
  PTERYX_TRY(F(n, p, product_of(sums)));
  return qlinear::plan_merge(n, p, d, {sums.y, 1, 1, 1, 0});
}

// ---------------------------------------------------------------- few rows

constexpr int64_t kMostRows = 8;
constexpr int64_t kMostPairedRows = 4;  // with two columns for each

bool in_pairs(const QLinear& d) { return d.gated || (d.rotation && d.rotation->halves); }

bool fits_gemv_layer(const Node& n, const gpu::Caps& caps) {
  const auto d = describe_qlinear(n);
  return d.ok() && d->m >= 1 && d->m <= kMostRows && d->k >= 8 && d->k % 8 == 0 && d->n >= 4 &&
         has_subgroup_fold(caps) && caps.max_invocations >= 256;
}

Status gemv_layer(const Node& n, Plan& p,
                  QLinear d) {  // NOLINT(performance-unnecessary-value-param)
  const int64_t units = (d.n + 3) / 4 / (in_pairs(d) ? 2 : 1);
  Fold f{
      .team = 32, .workgroup = 128, .block = std::bit_floor(std::min(p.caps().subgroup_min, 32U))};
  // Small products need more invocations for each result to keep the memory busy.
  const int64_t enough = p.caps().sizes.enough_invocations();
  while (f.team < 256 && f.team * 8 < d.k && units * f.team < enough) f.team *= 2;
  f.workgroup = std::max(f.workgroup, f.team);
  Options options = f.options()
                        .set("rows", d.m)
                        .set("normed", d.norm ? 1 : 0)
                        .set("gated", d.gated ? 1 : 0)
                        .set("rotated", d.rotation ? 1 : 0);
  qlinear::set_result_options(d, false, options);
  std::vector<Bind> bind = {{"x", d.x}, {"weight", d.weight}};
  if (d.norm) bind.push_back({"norm", *d.norm});
  if (d.rotation) {
    options.set("halves", d.rotation->halves ? 1 : 0);
    qlinear::set_rotation(d, options, bind);
  } else {
    qlinear::bind_results(d, bind);
  }
  const qlinear::Params params = qlinear::make_params(d);
  return p.dispatch(n, {.shader = &shaders::linear_gemv,
                        .options = std::move(options),
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .live = qlinear::live_ints(d),
                        .grid = f.grid(units, p.caps())});
}

Status plan_gemv_layer(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const QLinear d, describe_qlinear(n));
  const bool pairs = d.m <= kMostPairedRows;
  const bool turns =
      d.rotation && !d.rotation->q_norm &&
      (!d.rotation->halves || (pairs && d.rotation->size() % 8 == 0)) &&
      2 + qlinear::rotation_buffers(d) + (d.norm ? 1 : 0) <= p.caps().max_storage_buffers;
  return plan_around(n, p, gemv_layer, {.norm = true, .gate = pairs, .rotation = turns});
}

// ---------------------------------------------------------------- choice

template <auto F>
struct LayerChoice {
  static bool call(const Node& n, const gpu::Caps& caps) {
    const auto d = describe_qlinear(n);
    return d.ok() && F(product_of(*d), caps);
  }
};
template <auto F>
struct LayerPlan {
  static Status call(const Node& n, Plan& p) { return plan_around(n, p, multiply<F>); }
};

}  // namespace

std::span<const Route> linear_routes() {
  using Products = matmul::Routes<LayerChoice, LayerPlan>;
  static constexpr auto kRoutes = [] {
    std::array<Route, std::size(Products::kAll) + 1> all{};
    all[0] = {"gemv_layer", fits_gemv_layer, plan_gemv_layer};
    std::ranges::copy(Products::kAll, all.begin() + 1);
    return all;
  }();
  return kRoutes;
}

}  // namespace pteryx::ops
