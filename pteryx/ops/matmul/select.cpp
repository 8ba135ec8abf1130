// How a matrix product runs on the GPU: plans of the routes, and the choice of one.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>

#include "pteryx/ops/fold.h"
#include "pteryx/ops/matmul/kernels.h"
#include "pteryx/ops/matmul/routes.h"
#include "pteryx/ops/shaders/matmul_gemv.h"
#include "pteryx/ops/shaders/matmul_gemv_columns.h"
#include "pteryx/ops/shaders/matmul_gemv_subgroup.h"
#include "pteryx/ops/shaders/matmul_naive.h"

namespace pteryx::ops {
namespace matmul {
namespace {

constexpr int64_t kMaxGemvRows = 8;

// A kernel for a few rows of a.
Status plan_rows(const Node& n, Plan& p, const MatMul& d, const Shader& shader, Operands operands,
                 uint32_t rows, const gpu::Grid& grid) {
  operands.options.set("rows", rows);
  const auto params = make_params(d);
  return p.dispatch(n, {.shader = &shader,
                        .options = std::move(operands.options),
                        .bind = std::move(operands.bind),
                        .params = bytes_of(params),
                        .grid = grid});
}

}  // namespace

Status plan_naive(const Node& n, Plan& p, const MatMul& d) {
  const auto params = make_params(d);
  Operands operands{.options = {}, .bind = {{"a", d.a.tensor}, {"b", d.b.tensor}}};
  operands.add_slots(d);
  operands.bind.push_back({"y", d.y});
  return p.dispatch(n, {.shader = &shaders::matmul_naive,
                        .options = std::move(operands.options),
                        .bind = std::move(operands.bind),
                        .params = bytes_of(params),
                        .grid = per_element(words(d.y.numel(), d.y.dtype), p.caps())});
}

Status plan_gemv_subgroup(const Node& n, Plan& p, const MatMul& d) {
  if (d.m == 0) return {};
  const int64_t units = d.batches * up(d.n, 4);
  Fold f{
      .team = 32, .workgroup = 128, .block = std::bit_floor(std::min(p.caps().subgroup_min, 32U))};
  // Small products need more invocations for each result to keep the memory busy.
  while (f.team < 256 && f.team * 8 < d.k && units * f.team < p.caps().sizes.enough_invocations())
    f.team *= 2;
  f.workgroup = std::max(f.workgroup, f.team);
  Operands operands{.options = f.options(), .bind = {}};
  operands.add_a(d).add_b(d, Loads::kEights).add_y(d);
  return plan_rows(n, p, d, shaders::matmul_gemv_subgroup, std::move(operands), u32(d.m),
                   f.grid(units, p.caps()));
}

Status plan_gemv(const Node& n, Plan& p, const MatMul& d) {
  if (d.m == 0) return {};
  const auto rows = std::bit_ceil(u32(d.m));
  if (!d.b_along_k()) {
    Operands operands;
    operands.add_a(d).add_b(d, Loads::kFours).add_y(d);
    return plan_rows(n, p, d, shaders::matmul_gemv_columns, std::move(operands), rows,
                     per_group(d.batches * up(d.n, 32), p.caps()));
  }
  // Small products need more invocations for each result to keep the memory busy.
  const int64_t units = d.batches * up(d.n, 4);
  const bool wide = units * 32 < p.caps().sizes.enough_invocations() && d.k >= 2048;
  const Fold f = make_fold(FoldRoute::kTree, wide ? 1024 : 256, 256, p.caps());
  Operands operands{.options = f.options(), .bind = {}};
  operands.add_a(d).add_b(d, Loads::kFours).add_y(d);
  return plan_rows(n, p, d, shaders::matmul_gemv, std::move(operands), rows,
                   f.grid(units, p.caps()));
}

// ---------------------------------------------------------------- choice

bool fits_gemv(const MatMul& d, const gpu::Caps& caps) {
  return d.m <= kMaxGemvRows && caps.max_invocations >= 256;
}
bool fits_gemv_subgroup(const MatMul& d, const gpu::Caps& caps) {
  return fits_gemv(d, caps) && has_subgroup_fold(caps) && d.b_along_k();
}
bool fits_naive(const MatMul& /*d*/, const gpu::Caps& /*caps*/) { return true; }
bool suits_never(const MatMul& /*d*/, const gpu::Caps& /*caps*/) { return false; }

}  // namespace matmul

namespace {

template <auto F>
struct ProductChoice {
  static bool call(const Node& n, const gpu::Caps& caps) {
    const auto d = describe_matmul(n);
    return d.ok() && F(*d, caps);
  }
};
template <auto F>
struct ProductPlan {
  static Status call(const Node& n, Plan& p) {
    PTERYX_ASSIGN(const MatMul d, describe_matmul(n));
    return F(n, p, d);
  }
};

}  // namespace

std::span<const Route> matmul_routes() { return matmul::Routes<ProductChoice, ProductPlan>::kAll; }

}  // namespace pteryx::ops
