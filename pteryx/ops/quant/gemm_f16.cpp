// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/quant/gemm_f16.h"

#include <algorithm>

#include "pteryx/ops/fold.h"
#include "pteryx/ops/quant/parts.h"
#include "pteryx/ops/shaders/qlinear_f16_rows.h"
#include "pteryx/ops/shaders/qlinear_subgroup_matrix.h"
#include "pteryx/ops/shaders/qlinear_tiled_f16.h"

namespace pteryx::ops::qlinear {
namespace {

MatrixProduct product(const QLinear& d) { return {1, d.m, d.n, d.k, d.gated}; }

// A product in tiles, k cut into parts.
struct Tiles {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;  // of k at a time
  int64_t splits = 1;
  int64_t steps = 1;  // of k for each part

  int64_t row() const { return splits * steps * depth; }  // elements of a row of x
  int64_t fill_m(const QLinear& d) const { return up(d.m, rows) * rows; }
  int64_t fill_n(const QLinear& d) const { return up(d.n, columns) * columns; }
  int64_t workgroups(const QLinear& d) const { return up(d.m, rows) * up(d.n, columns) * splits; }
};

// x in f16, in whole steps of k: a pass makes it where it is not so.
Result<Tensor> plan_f16_rows(const Node& n, Plan& p, QLinear& d, const Tiles& t) {
  if (d.x.dtype == DType::kF16 && t.row() == d.k) return d.x;
  d.interleaved = wants_interleaved(d);
  const Tensor y = p.scratch(DType::kF16, {t.fill_m(d), t.row()});
  Options options = {{"interleaved", d.interleaved ? 1 : 0}, {"wide", t.row() / 8}};
  set_x_options(d, options);
  const Params params = make_params(d);
  PTERYX_TRY(p.dispatch(n, {.shader = &shaders::qlinear_f16_rows,
                            .options = std::move(options),
                            .bind = {{"x", d.x}, {"y", y}},
                            .params = bytes_of(params),
                            .grid = per_element(d.m * t.row() / 8, p.caps())}));
  return y;
}

// How results leave a tile that is not a part: `store` of the kernels.
std::string store_of(const QLinear& d) { return widths_are(d, 4) ? "fours" : "elements"; }

// The product itself; `first` is what the kernel makes, parts of sums or d.
Status plan_product(const Node& n, Plan& p, QLinear d, const QLinear& first, const Tiles& t,
                    const Shader& shader, Options options) {
  PTERYX_ASSIGN(const Tensor a, plan_f16_rows(n, p, d, t));
  set_weight_options(d, options);
  options.set("row_words", in_row_words(first.y.dtype, first.y.dim(-1)) ? 1 : 0)
      .set("has_bias", first.bias ? 1 : 0)
      .set("has_residual", first.residual ? 1 : 0)
      .set("n_whole", t.fill_n(d) == d.n ? 1 : 0)
      .set("k_whole", t.row() == d.k ? 1 : 0)
      .set("interleaved", d.interleaved ? 1 : 0)
      .set("a_filled", a.rows() >= t.fill_m(d) ? 1 : 0)
      .set("row_units", d.row_bytes / 16)
      .set("group", std::max<int64_t>(d.group, 1))
      .set("steps", t.steps)
      .set("splits", t.splits);
  std::vector<Bind> bind = {{"a", a}};
  bind_weight(d, options, bind);
  bind_results(first, bind);
  Params params = make_params(d);
  params.splits = u32(t.splits);
  params.chunk = u32(t.steps * t.depth);
  const std::string tile = fmt::format("{}x{}x{}", t.rows, t.columns, t.depth);
  return p.dispatch(n, {.shader = &shader,
                        .options = std::move(options),
                        .variant = tile,
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .grid = per_group(t.workgroups(d), p.caps())});
}

// Sums that a merge finishes.
QLinear parts_of(Plan& p, const QLinear& d, const Tiles& t) {
  QLinear parts = d;
  parts.y = p.scratch(DType::kF32, {t.splits, t.fill_m(d), t.fill_n(d)});
  parts.more.clear();
  parts.bias.reset();
  parts.residual.reset();
  parts.rotation.reset();
  return parts;
}

// Without subgroup matrices: tiles of 64 or 128 rows and 128 columns.
Tiles tiles_without_matrices(const QLinear& d, const gpu::Caps& caps) {
  const int64_t enough = 2 * int64_t{caps.sizes.processors};
  Tiles t{.rows = d.m > 64 ? 128 : 64, .columns = 128, .depth = 32};
  t.steps = std::max<int64_t>(up(d.k, t.depth), 1);
  const int64_t tiles = std::max<int64_t>(t.workgroups(d), 1);
  int64_t splits = std::min({enough / tiles, t.steps * t.depth / 256, int64_t{16}});
  while (splits > 1 && t.steps % splits != 0) --splits;  // all parts have as many steps
  t.splits = std::max<int64_t>(splits, 1);
  t.steps /= t.splits;
  return t;
}

}  // namespace

template <MatrixSize Size>
bool fits_subgroup_matrix(const Node& n, const gpu::Caps& caps) {
  const auto d = describe_qlinear(n);
  if (!d.ok() || !has_vectors(n, *d)) return false;
  const size_t buffers =
      4 + d->more.size() + (d->minimums ? 1 : 0) + (d->bias ? 1 : 0) + (d->residual ? 1 : 0);
  return buffers <= std::min(8U, caps.max_storage_buffers) && has_matrix(Size, product(*d), caps);
}

template <MatrixSize Size>
bool suits_subgroup_matrix(const Node& n, const gpu::Caps& caps) {
  const auto d = describe_qlinear(n);
  return d.ok() && suits_matrix(Size, product(*d), caps);
}

namespace {

template <MatrixSize Size>
Status subgroup_matrix(const Node& n, Plan& p, QLinear d) {
  PTERYX_TRY(use_vectors(n, p, d));
  const MatrixPlan m = plan_matrix(Size, product(d), p.caps());
  const Tiles t{m.tile.rows(), m.tile.columns(), m.tile.depth, m.splits, m.steps};
  const bool plain = d.y.dtype == DType::kF32 && !d.bias && d.factor == 1 &&
                     (!d.residual || d.residual->dtype == DType::kF32);
  const bool whole = plain && widths_are(d, t.columns) && stores_whole_matrices(p.caps());
  const bool parts = t.splits > 1 || d.rotation;
  const QLinear first = parts ? parts_of(p, d, t) : d;
  const int64_t side = d.gated ? m.tile.pieces_n * 8 : 0;
  Options options = m.options(true);
  options.set("results", static_cast<int64_t>(first.more.size() + 1))
      .set("store", whole ? "whole" : store_of(d))
      .set("y_stride", d.more.empty() ? d.n : 0)
      .set("paired_side", side)
      // A gate over many tiles is slower so, and so is any loop whose bound the library does not
      // know when it checks accesses; all others gain, as their code stays at hand.
      .set("rolled", (d.gated && m.queue(p.caps())) || p.caps().bounds_checks ? 0 : 1);
  if (d.gated) options.set("store", "gated");
  if (parts) options.set("store", store_of_parts(p.caps())).set("y_stride", t.fill_n(d));
  PTERYX_TRY(plan_product(n, p, d, first, t, shaders::qlinear_subgroup_matrix, std::move(options)));
  if (!parts) return {};
  return plan_merge(n, p, d, {first.y, t.splits, t.rows, t.columns, side});
}

}  // namespace

template <MatrixSize Size>
Status plan_subgroup_matrix(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const QLinear d, describe_qlinear(n));
  // Results of a gate leave in vectors of eight.
  return plan_around(n, p, subgroup_matrix<Size>,
                     {.gate = d.n % 16 == 0, .rotation = true, .halves = true});
}

template bool fits_subgroup_matrix<MatrixSize::kLarge>(const Node&, const gpu::Caps&);
template bool fits_subgroup_matrix<MatrixSize::kSmall>(const Node&, const gpu::Caps&);
template bool fits_subgroup_matrix<MatrixSize::kFew>(const Node&, const gpu::Caps&);
template bool suits_subgroup_matrix<MatrixSize::kLarge>(const Node&, const gpu::Caps&);
template bool suits_subgroup_matrix<MatrixSize::kSmall>(const Node&, const gpu::Caps&);
template bool suits_subgroup_matrix<MatrixSize::kFew>(const Node&, const gpu::Caps&);
template Status plan_subgroup_matrix<MatrixSize::kLarge>(const Node&, Plan&);
template Status plan_subgroup_matrix<MatrixSize::kSmall>(const Node&, Plan&);
template Status plan_subgroup_matrix<MatrixSize::kFew>(const Node&, Plan&);

bool fits_tiled_f16(const Node& n, const gpu::Caps& caps) {
  const auto d = describe_qlinear(n);
  const uint32_t bytes = 16 * (33 + (d.ok() && d->m > 64 ? 33 : 17)) * 16;
  return d.ok() && d->m >= kMatrixMinRows && d->k > 0 && d->k <= (int64_t{1} << 20) &&
         has_vectors(n, *d) && caps.max_invocations >= 256 && caps.max_workgroup_bytes >= bytes;
}

namespace {

Status tiled_f16(const Node& n, Plan& p, QLinear d) {
  PTERYX_TRY(use_vectors(n, p, d));
  const Tiles t = tiles_without_matrices(d, p.caps());
  // Several results would make the code of each of an invocation's results long: a merge shares
  // them out.
  const bool parts = t.splits > 1 || !d.more.empty() || d.rotation;
  const QLinear first = parts ? parts_of(p, d, t) : d;
  PTERYX_TRY(plan_product(n, p, d, first, t, shaders::qlinear_tiled_f16,
                          {{"row_fours", t.rows / 64}, {"store", parts ? "parts" : store_of(d)}}));
  return parts ? plan_merge(n, p, d, {first.y, t.splits, t.rows, t.columns}) : ok_status();
}

}  // namespace

Status plan_tiled_f16(const Node& n, Plan& p) {
  return plan_around(n, p, tiled_f16, {.rotation = true, .halves = true});
}

}  // namespace pteryx::ops::qlinear
