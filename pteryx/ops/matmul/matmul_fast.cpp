// Matrix products on the CPU, with vectors and threads: weights as they lie in the file.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "pteryx/cpu/arena.h"
#include "pteryx/cpu/gemm.h"
#include "pteryx/cpu/pool.h"
#include "pteryx/cpu/product.h"
#include "pteryx/ops/float_rows.h"
#include "pteryx/ops/matmul/matmul.h"

namespace pteryx::ops {
namespace {

constexpr int64_t kFewRows = 4;  // that leave the weight in its layout

bool is_operand(const std::optional<Matrix>& m) {
  return !m || (is_f32_or_f16(m->tensor) && m->row >= 0 && (m->column == 0 || m->column == 1));
}

bool fits(const MatMul& d) {
  if (d.batches == 0 || d.m == 0 || d.n == 0) return false;
  if (!is_f32_or_f16(d.a.tensor) || !is_f32_or_f16(d.b.tensor) || !is_f32_or_f16(d.y)) return false;
  if (d.a.column != 1 || (d.b.row != 1 && d.b.column != 1)) return false;
  return is_operand(d.add) && is_operand(d.scale) && (!d.residual || is_f32_or_f16(*d.residual));
}

cpu::Activation activation_of(Activation a) {
  switch (a) {
    case Activation::kNone: break;
    case Activation::kRelu: return cpu::Activation::kRelu;
    case Activation::kSilu: return cpu::Activation::kSilu;
    case Activation::kGelu: return cpu::Activation::kGelu;
    case Activation::kGeluTanh: return cpu::Activation::kGeluTanh;
  }
  return cpu::Activation::kNone;
}

cpu::Operand operand(const Matrix& m, const Host& h, CpuContext& c) {
  return {widened(h.host(m.tensor.id), c), size(m.row), size(m.column)};
}

// Of the first batch.
cpu::Finish finish_of(const MatMul& d, const Host& h, CpuContext& c) {
  cpu::Finish f;
  if (d.alpha != 1) {
    auto* const alpha = c.memory.take_array<float>(1);
    if (!c.dry_run()) *alpha = static_cast<float>(d.alpha);
    f.factor = {alpha, 0, 0};
  }
  if (d.add) {
    f.shift = operand(*d.add, h, c);
    if (d.beta != 1) {
      const auto count = size(d.add->tensor.numel());
      auto* const scaled = c.memory.take_array<float>(count);
      for (size_t i = 0; i < count && !c.dry_run(); ++i)
        scaled[i] = static_cast<float>(d.beta) * f.shift.data[i];
      f.shift.data = scaled;
    }
  }
  f.activation = activation_of(d.activation);
  if (d.scale) f.scale = operand(*d.scale, h, c);
  if (d.residual) f.residual = {widened(h.host(d.residual->id), c), size(d.n), 1};
  return f;
}

cpu::Right right_of(const MatMul& d, const Host& h, CpuContext& c) {
  const HostTensor b = h.host(d.b.tensor.id);
  if (!d.b_along_k())
    return {.kind = cpu::RightKind::kRows, .data = widened(b, c), .stride = size(d.b.row)};
  const bool half = b.dtype == DType::kF16;
  return {.kind = half ? cpu::RightKind::kHalfColumns : cpu::RightKind::kColumns,
          .data = b.data,
          .stride = size(d.b.column)};
}

void by_tiles(const MatMul& d, const cpu::Gemm& given, CpuContext& c) {
  cpu::Gemm g = given;
  const auto batches = size(d.batches);
  const size_t element = g.b.kind == cpu::RightKind::kHalfColumns ? 2 : sizeof(float);
  const cpu::GemmItems items = cpu::cut_gemm(g, c.pool.threads(), batches - 1);
  const PerThread scratch(c, cpu::gemm_scratch_bytes());
  const cpu::Panels panels = batches == 1 ? cpu::panels_of(g, items) : cpu::Panels{};
  if (c.dry_run()) {
    c.memory.take(cpu::most_panel_bytes(g, c.pool.threads()));
    return;
  }
  if (panels.count > 0) g.panels = c.memory.take(panels.bytes);
  if (panels.count > 0) {
    c.pool.run(panels.count, [&](size_t i, size_t thread) {
      cpu::gather_panel(g, items, i, scratch.of(thread));
    });
  }
  c.pool.run(batches * items.count(), [&](size_t i, size_t thread) {
    const size_t batch = i / items.count();
    cpu::Gemm of = g;
    of.a += batch * size(d.a.batch);
    of.b.data = static_cast<const std::byte*>(g.b.data) + batch * size(d.b.batch) * element;
    if (d.add) of.finish.shift.data += batch * size(d.add->batch);
    if (d.residual) of.finish.residual.data += batch * g.m * g.n;
    of.y += batch * g.m * g.n;
    cpu::multiply(of, items, i % items.count(), scratch.of(thread));
  });
}

void by_rows(const cpu::Gemm& g, CpuContext& c) {
  const bool half = g.b.kind == cpu::RightKind::kHalfColumns;
  const cpu::Weight w{.kind = half ? cpu::WeightKind::kF16 : cpu::WeightKind::kF32,
                      .n = g.n,
                      .k = g.k,
                      .data = g.b.data,
                      .row_bytes = g.b.stride * (half ? 2 : sizeof(float))};
  constexpr size_t kStep = 64;
  const PerThread scratch(c, cpu::scratch_bytes(w, g.m, Precision::kF32));
  auto* const prepared = c.memory.take(cpu::prepared_bytes(w, g.m, Precision::kF32));
  if (c.dry_run()) return;
  cpu::prepare(w, g.m, Precision::kF32, g.a, g.a_row, 0, g.m, prepared);
  c.pool.run((g.n + kStep - 1) / kStep, [&](size_t i, size_t thread) {
    cpu::multiply(w, g.m, Precision::kF32, g.a, g.a_row, prepared, i * kStep,
                  std::min((i + 1) * kStep, g.n), g.y, g.y_row, scratch.of(thread));
  });
  cpu::finish(g.finish, g.m, g.n, g.y);
}

}  // namespace

Result<bool> matmul_fast(const Node& n, const Host& h, CpuContext& c) {
  PTERYX_ASSIGN(const MatMul d, describe_matmul(n));
  if (!fits(d)) return false;
  const HostTensor y = h.host(d.y.id);
  const cpu::Gemm g{.m = size(d.m),
                    .n = size(d.n),
                    .k = size(d.k),
                    .a = widened(h.host(d.a.tensor.id), c),
                    .a_row = size(d.a.row),
                    .b = right_of(d, h, c),
                    .finish = finish_of(d, h, c),
                    .y = is_f32(d.y) ? floats(y) : c.memory.take_array<float>(count_of(y)),
                    .y_row = size(d.n)};
  if (d.batches == 1 && d.m <= kFewRows && d.k > 0 && d.b_along_k()) {
    by_rows(g, c);
  } else {
    by_tiles(d, g, c);
  }
  if (!is_f32(d.y) && !c.dry_run()) store_floats(g.y, y, 0, size(y.numel()));
  return true;
}

}  // namespace pteryx::ops
