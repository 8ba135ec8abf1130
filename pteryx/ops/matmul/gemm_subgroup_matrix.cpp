// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/matmul/kernels.h"
#include "pteryx/ops/matmul/routes.h"
#include "pteryx/ops/shaders/conv_pack_halves.h"
#include "pteryx/ops/shaders/matmul_f16_rows.h"
#include "pteryx/ops/shaders/matmul_subgroup_matrix.h"

namespace pteryx::ops::matmul {
namespace {

MatrixProduct product(const MatMul& d) { return {d.batches, d.m, d.n, d.k}; }

// Halves that lie as the kernel wants them need no pass of their own.
bool is_ready(const MatMul& d, const MatrixPlan& t) {
  return d.a.tensor.dtype == DType::kF16 && d.k == t.row() && d.a.column == 1 && d.a.row == d.k &&
         (d.batches == 1 || d.a.batch == d.m * d.k);
}

// a in f16, in whole steps of k and whole tiles.
Result<Tensor> plan_f16_rows(const Node& n, Plan& p, const MatMul& d, const MatrixPlan& t) {
  const int64_t fill = t.tile.rows();
  const Tensor y = p.scratch(DType::kF16, {d.batches, up(d.m, fill) * fill, t.row()});
  Operands operands;
  operands.add_a(d);
  operands.options.set("fill_m", fill).set("wide", t.row() / 8);
  operands.bind.push_back({"y", y});
  const Params params = make_params(d);
  PTERYX_TRY(p.dispatch(n, {.shader = &shaders::matmul_f16_rows,
                            .options = std::move(operands.options),
                            .bind = std::move(operands.bind),
                            .params = bytes_of(params),
                            .grid = per_element(d.batches * d.m * t.row() / 8, p.caps())}));
  return y;
}

// Rows [rows, k] of a constant as halves, made once; nullopt where they are not such.
std::optional<Result<Tensor>> halves_of(const Node& n, Plan& p, const Matrix& x, int64_t rows,
                                        int64_t row_step, int64_t k) {
  const int64_t items = rows * k / 8;
  if (!n.is_constant(x.tensor) || x.tensor.dtype != DType::kF32 || row_step != k || k % 8 != 0 ||
      items == 0)
    return std::nullopt;
  const shaders::ConvPackHalvesParams params{
      .taps = 1, .in_channels = u32(k), .wide_in = u32(k), .k = u32(k), .items = u32(items)};
  return p.relaid(n, x.tensor, "halves", DType::kF16, {rows, k},
                  {.shader = &shaders::conv_pack_halves,
                   .options = {{"order", "taps"}},
                   .params = bytes_of(params),
                   .grid = per_element(items, p.caps())});
}

// How results leave a tile: `store` of matmul_subgroup_matrix.wgsl.
std::string store_of(const MatMul& d, const MatrixPlan& t, const gpu::Caps& caps) {
  if (t.splits > 1) return store_of_parts(caps);
  const bool whole = d.n % t.tile.columns() == 0 && d.k % t.tile.depth == 0;
  if (whole && d.y.dtype == DType::kF32 && d.is_plain() && stores_whole_matrices(caps))
    return "whole";
  return d.n % 4 == 0 ? "fours" : "elements";
}

}  // namespace

template <MatrixSize Size>
bool fits_subgroup_matrix(const MatMul& d, const gpu::Caps& caps) {
  return has_matrix(Size, product(d), caps);
}

template <MatrixSize Size>
bool suits_subgroup_matrix(const MatMul& d, const gpu::Caps& caps) {
  // Of few terms a large tile is mostly its end, which small ones have more invocations for.
  constexpr int64_t kFewTerms = 512;
  const bool brief = d.m > kMatrixFewRows && d.k < kFewTerms &&
                     d.batches * up(d.m, 128) * up(d.n, 128) < caps.sizes.processors;
  return brief ? Size == MatrixSize::kSmall : suits_matrix(Size, product(d), caps);
}

template <MatrixSize Size>
Status plan_subgroup_matrix(const Node& n, Plan& p, const MatMul& given) {
  MatMul d = given;
  const MatrixPlan t = plan_matrix(Size, product(d), p.caps());
  const bool constant = n.is_constant(d.b.tensor) || n.is_constant(d.a.tensor);
  if (d.batches == 1 && d.b_along_k()) {
    if (auto b = halves_of(n, p, d.b, d.n, d.b.column, d.k)) {
      PTERYX_ASSIGN(d.b.tensor, std::move(*b));
    }
  }
  if (d.batches == 1 && d.a.column == 1) {
    if (auto a = halves_of(n, p, d.a, d.m, d.a.row, d.k)) {
      PTERYX_ASSIGN(d.a.tensor, std::move(*a));
    }
  }
  const int64_t fill_m = up(d.m, t.tile.rows()) * t.tile.rows();
  const int64_t fill_n = up(d.n, t.tile.columns()) * t.tile.columns();
  const bool ready = is_ready(d, t);
  Tensor a = d.a.tensor;
  if (!ready) {
    PTERYX_ASSIGN(a, plan_f16_rows(n, p, d, t));
  }
  const std::string store = store_of(d, t, p.caps());
  MatMul first = d;
  if (t.splits > 1)
    first = d.unfinished(p.scratch(DType::kF32, {t.splits, d.batches, fill_m, fill_n}));
  Operands operands{.options = t.options(constant), .bind = {{"a", a}}};
  operands.add_b(d, Loads::kEights).add_y(first);
  operands.options.set("along_k", d.b_along_k() ? 1 : 0)
      .set("b_whole", fill_n == d.n && t.row() == d.k ? 1 : 0)
      .set("a_filled", !ready || fill_m == d.m ? 1 : 0)
      .set("store", store)
      .set("y_stride", constant ? (t.splits > 1 ? fill_n : d.n) : 0);
  auto params = make_params(d);
  params.splits = u32(t.splits);
  params.chunk = u32(t.steps * t.tile.depth);
  const std::string tile = t.tile.name();
  PTERYX_TRY(p.dispatch(n, {.shader = &shaders::matmul_subgroup_matrix,
                            .options = std::move(operands.options),
                            .variant = tile,
                            .bind = std::move(operands.bind),
                            .params = bytes_of(params),
                            .grid = per_group(t.tiles * t.splits, p.caps())}));
  if (t.splits == 1) return {};
  return plan_merge(n, p, d, first.y, t.splits, t.tile.rows(), t.tile.columns());
}

template bool fits_subgroup_matrix<MatrixSize::kLarge>(const MatMul&, const gpu::Caps&);
template bool fits_subgroup_matrix<MatrixSize::kSmall>(const MatMul&, const gpu::Caps&);
template bool fits_subgroup_matrix<MatrixSize::kFew>(const MatMul&, const gpu::Caps&);
template bool suits_subgroup_matrix<MatrixSize::kLarge>(const MatMul&, const gpu::Caps&);
template bool suits_subgroup_matrix<MatrixSize::kSmall>(const MatMul&, const gpu::Caps&);
template bool suits_subgroup_matrix<MatrixSize::kFew>(const MatMul&, const gpu::Caps&);
template Status plan_subgroup_matrix<MatrixSize::kLarge>(const Node&, Plan&, const MatMul&);
template Status plan_subgroup_matrix<MatrixSize::kSmall>(const Node&, Plan&, const MatMul&);
template Status plan_subgroup_matrix<MatrixSize::kFew>(const Node&, Plan&, const MatMul&);

}  // namespace pteryx::ops::matmul
