// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/matmul/kernels.h"

#include "pteryx/ops/fold.h"
#include "pteryx/ops/shaders/matmul_merge.h"

namespace pteryx::ops::matmul {
namespace {

bool grouped(int64_t neighbours, int64_t inner_size, int64_t inner_step, int64_t outer_step,
             int64_t batch_step) {
  return inner_step == 1 && inner_size > 0 && inner_size % neighbours == 0 &&
         outer_step % neighbours == 0 && batch_step % neighbours == 0;
}

std::string_view b_load(const MatMul& d, Loads most) {
  if (most == Loads::kEights && d.b.tensor.dtype == DType::kF16 && b_in(d, 8)) return "eights";
  return b_in(d, 4) ? "fours" : "elements";
}

}  // namespace

Params make_params(const MatMul& d) {
  const Matrix add = d.add.value_or(Matrix{});
  const Matrix scale = d.scale.value_or(Matrix{});
  return {.batches = u32(d.batches),
          .m = u32(d.m),
          .n = u32(d.n),
          .k = u32(d.k),
          .a_batch = u32(d.a.batch),
          .a_row = u32(d.a.row),
          .a_column = u32(d.a.column),
          .b_batch = u32(d.b.batch),
          .b_row = u32(d.b.row),
          .b_column = u32(d.b.column),
          .add_batch = u32(add.batch),
          .add_row = u32(add.row),
          .add_column = u32(add.column),
          .alpha = static_cast<float>(d.alpha),
          .beta = static_cast<float>(d.beta),
          .splits = 1,
          .chunk = u32(d.k),
          .scale_row = u32(scale.row),
          .scale_column = u32(scale.column)};
}

bool a_in(const MatMul& d, int64_t neighbours) {
  return grouped(neighbours, d.k, d.a.column, d.a.row, d.a.batch);
}
bool b_in(const MatMul& d, int64_t neighbours) {
  return d.b_along_k() ? grouped(neighbours, d.k, d.b.row, d.b.column, d.b.batch)
                       : grouped(neighbours, d.n, d.b.column, d.b.row, d.b.batch);
}

Operands& Operands::add_a(const MatMul& d) {
  options.set("a_fours", a_in(d, 4) ? 1 : 0);
  bind.push_back({"a", d.a.tensor});
  return *this;
}
Operands& Operands::add_b(const MatMul& d, Loads most) {
  options.set("b_load", std::string(b_load(d, most)));
  bind.push_back({"b", d.b.tensor});
  return *this;
}
Operands& Operands::add_slots(const MatMul& d) {
  options.set("has_add", d.add ? 1 : 0)
      .set("activation", std::string(kActivationNames[static_cast<size_t>(d.activation)]))
      .set("has_scale", d.scale ? 1 : 0)
      .set("has_residual", d.residual ? 1 : 0);
  if (d.add) bind.push_back({"add", d.add->tensor});
  if (d.scale) bind.push_back({"scale", d.scale->tensor});
  if (d.residual) bind.push_back({"residual", *d.residual});
  return *this;
}
Operands& Operands::add_y(const MatMul& d) {
  options.set("row_words", in_row_words(d.y.dtype, d.n) ? 1 : 0);
  add_slots(d);
  bind.push_back({"y", d.y});
  return *this;
}

Status plan_merge(const Node& n, Plan& p, const MatMul& d, const Tensor& parts, int64_t splits,
                  int64_t fill_m, int64_t fill_n) {
  const auto params = make_params(d);
  const bool fours = d.n % 4 == 0 && up(d.n, fill_n) * fill_n % 4 == 0;
  Operands operands{.options = {{"splits", splits},
                                {"fours", fours ? 1 : 0},
                                {"fill_m", fill_m},
                                {"fill_n", fill_n}},
                    .bind = {{"parts", parts}}};
  operands.add_slots(d);
  operands.bind.push_back({"y", d.y});
  return p.dispatch(
      n, {.shader = &shaders::matmul_merge,
          .options = std::move(operands.options),
          .bind = std::move(operands.bind),
          .params = bytes_of(params),
          .grid = per_element(fours ? d.y.numel() / 4 : words(d.y.numel(), d.y.dtype), p.caps())});
}

}  // namespace pteryx::ops::matmul
