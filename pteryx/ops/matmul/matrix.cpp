// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/matmul/matrix.h"

#include "pteryx/ops/fold.h"
#include "pteryx/ops/matmul/texts.h"
#include "pteryx/ops/matrix_tile.h"
#include "pteryx/ops/shaders/matmul_halves.h"
#include "pteryx/ops/shaders/matmul_matrix.h"

namespace pteryx::ops::matmul {
namespace {

constexpr std::string_view kBatches = "fn batches() -> u32 { return params.batches; }\n";

// Halves that lie as the kernel wants them need no pass of their own.
bool is_ready(const MatMul& d) {
  return d.a.tensor.dtype == DType::kF16 && d.k % 64 == 0 && d.a.column == 1 && d.a.row == d.k &&
         d.a.batch == d.m * d.k;
}

Result<Tensor> plan_halves(const Node& n, Plan& p, const MatMul& d) {
  if (is_ready(d)) return d.a.tensor;
  const Fetch a = fetch_a(d);
  const Tensor y = p.scratch(DType::kF16, {d.batches, d.m, matrix_row(d.k)});
  const std::string prelude = fmt::format(
      "{}{}{}fn four_of(row: u32, k: u32) -> vec4<f32> {{ return a4(row / params.m * "
      "params.a_batch, row % params.m, k); }}\n",
      kBatches, fetch_text(a), halves_text(KOrder::kNatural));
  const Params params = make_params(d);
  PTERYX_TRY(p.dispatch(
      n, {.shader = &shaders::matmul_halves,
          .prelude = prelude,
          .bind = {bind_operand(a, d.a.tensor), {"y", y, Access::kRawWrite, "vec4<u32>"}},
          .params = bytes_of(params),
          .grid = per_element(y.numel() / 8, p.caps())}));
  return y;
}

std::string weights_text(const MatMul& d, const Fetch& b) {
  const std::string head = fmt::format(
      "const unit_b: u32 = 8u;\nfn scale_b(n: u32, k: u32) -> f32 {{ return 1.0; }}\n"
      "fn expand_b(raw: vec4<u32>, scale: f32, j: u32) -> vec4<u32> {{ return raw; }}\n"
      "fn raw_b(batch: u32, n: u32, k: u32) -> vec4<u32> {{\n  let base = batch * params.b_batch;\n"
      "  let outer = {};\n  let inner = {};\n",
      d.b_along_k() ? "n" : "k", d.b_along_k() ? "k" : "n");
  if (in_eights(b)) {
    return head +
           fmt::format(
               "  if (outer >= params.{} || inner >= params.{}) {{ return vec4<u32>(0u); }}\n"
               "  return b[(base + outer * params.{} + inner) / 8u];\n}}\n",
               b.outer, b.inner, b.outer_stride);
  }
  return fmt::format(
      "{}{}{}  let most = vec4<f32>(65504.0);\n"
      "  return halves(clamp(b4(base, outer, inner), -most, most), clamp(b4(base, outer, inner + "
      "4u), -most, most));\n}}\n",
      fetch_text(b), halves_text(KOrder::kNatural), head);
}

}  // namespace

template <int64_t Tile>
bool fits_matrix(const Node& n, const gpu::Caps& caps) {
  const auto d = describe_matmul(n);
  return d.ok() && d->m >= kMatrixMinRows && d->k > 0 && has_matrix(Tile, caps);
}

template <int64_t Tile>
bool suits_matrix(const Node& n, const gpu::Caps& /*caps*/) {
  const auto d = describe_matmul(n);
  return d.ok() && ops::suits_matrix(Tile, d->batches, d->m, d->n);
}

template <int64_t Tile>
Status plan_matrix(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const MatMul d, describe_matmul(n));
  const MatrixTiles t = matrix_tiles(Tile, d.batches, d.m, d.n, d.k);
  const Fetch b = fetch_b(d);
  PTERYX_ASSIGN(const Tensor a, plan_halves(n, p, d));
  const bool whole = t.splits == 1;
  const Tensor y = whole ? d.y : p.scratch(DType::kF32, {t.splits, d.batches, d.m, d.n});
  const Access access = row_access(y.dtype, d.n);
  auto params = make_params(d);
  params.splits = u32(t.splits);
  params.chunk = u32(t.chunk);
  std::vector<Bind> bind = {{"a", a, Access::kRawRead, "vec4<u32>"}, bind_operand(b, d.b.tensor)};
  if (in_eights(b)) bind[1] = {"b", d.b.tensor, Access::kRawRead, "vec4<u32>"};
  if (whole && d.add) bind.push_back({"add", d.add->tensor});
  bind.push_back({"y", y, access});
  const std::string text = fmt::format("const along_k: bool = {};\n{}{}{}{}", d.b_along_k(),
                                       kBatches, weights_text(d, b), whole ? epilogue_text(d) : "",
                                       put_text(access, y.dtype, whole ? kFinished : "{0}"));
  PTERYX_TRY(
      dispatch_matrix(n, p, t, shaders::matmul_matrix, text, std::move(bind), bytes_of(params)));
  return whole ? ok_status() : plan_merge(n, p, d, y, t.splits);
}

template bool fits_matrix<128>(const Node&, const gpu::Caps&);
template bool fits_matrix<64>(const Node&, const gpu::Caps&);
template bool suits_matrix<128>(const Node&, const gpu::Caps&);
template bool suits_matrix<64>(const Node&, const gpu::Caps&);
template Status plan_matrix<128>(const Node&, Plan&);
template Status plan_matrix<64>(const Node&, Plan&);

}  // namespace pteryx::ops::matmul
