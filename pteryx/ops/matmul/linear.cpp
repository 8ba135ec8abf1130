// Linear layers with float weights that take in what is around them: a matrix product, and around
// it what quantised layers have there as well.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/matmul/routes.h"
#include "pteryx/ops/quant/parts.h"

namespace pteryx::ops {
namespace {

using qlinear::plan_around;

// The product has one result, and adds a bias or a residual.
bool is_product(const QLinear& d) { return d.more.empty() && !(d.bias && d.residual); }

MatMul product_of(const QLinear& d) {
  MatMul m{.m = d.m,
           .n = d.n,
           .k = d.k,
           .a = {d.x, d.m * d.k, d.k, 1},
           .b = {d.weight, 0, 1, d.k},
           .add = {},
           .y = d.y};
  if (d.bias) m.add = Matrix{*d.bias, 0, 0, 1};
  if (d.residual) m.add = Matrix{*d.residual, d.m * d.n, d.n, 1};
  return m;
}

template <auto F>
Status multiply(const Node& n, Plan& p, QLinear d) {
  if (is_product(d)) return F(n, p, product_of(d));
  QLinear sums = d;
  sums.y = p.scratch(DType::kF32, {d.m, d.n});
  sums.bias.reset();
  sums.residual.reset();
  PTERYX_TRY(F(n, p, product_of(sums)));
  return qlinear::plan_merge(n, p, d, sums.y, 1, 1, 1);
}

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

std::span<const Route> linear_routes() { return matmul::Routes<LayerChoice, LayerPlan>::kAll; }

}  // namespace pteryx::ops
