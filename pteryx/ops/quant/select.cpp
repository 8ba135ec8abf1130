// How a quantised linear layer runs on the GPU: plans of the routes, and the choice of one.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>

#include "pteryx/ops/fold.h"
#include "pteryx/ops/quant/dot4.h"
#include "pteryx/ops/quant/gemm_f16.h"
#include "pteryx/ops/quant/parts.h"
#include "pteryx/ops/shaders/qlinear_gemv.h"
#include "pteryx/ops/shaders/qlinear_naive.h"
#include "pteryx/ops/shaders/qlinear_tiled.h"

namespace pteryx::ops {
namespace {

using namespace qlinear;

constexpr int64_t kMaxGemvRows = 8;

std::string name_of(Codes codes) {
  if (codes == Codes::kBytes) return "bytes";
  return codes == Codes::kLowFirst ? "low_first" : "high_first";
}

Status naive(const Node& n, Plan& p, QLinear d) {  // NOLINT(performance-unnecessary-value-param)
  Params params = make_params(d);
  for (const Columns& c : results(d)) {
    params.first_column = u32(c.first);
    params.width = u32(c.width);
    Options options = {{"codes", name_of(d.codes)},
                       {"scale_order", qlinear::name_of(d.scale_order)}};
    std::vector<Bind> bind = {{"x", d.x}};
    bind_weight(d, options, bind);
    set_finish(d, options, bind);
    bind.push_back({"y", c.y});
    PTERYX_TRY(p.dispatch(n, {.shader = &shaders::qlinear_naive,
                              .options = std::move(options),
                              .bind = std::move(bind),
                              .params = bytes_of(params),
                              .grid = per_element(words(c.y.numel(), c.y.dtype), p.caps())}));
  }
  return {};
}

// As many invocations for four columns as their weights have fetches, while the GPU has room.
Fold gemv_fold(const QLinear& d, FoldRoute route, const gpu::Caps& caps) {
  const int64_t units = std::max<int64_t>(up(d.k, unit(d)), 1);
  Fold f;
  f.team = std::clamp(std::bit_ceil(u32(units)), 8U, 32U);
  const int64_t enough = caps.sizes.enough_invocations();
  while (f.team < 256 && f.team < units && up(d.n, 4) * f.team < enough) f.team *= 2;
  f.workgroup = std::max(f.team, 64U);
  if (route == FoldRoute::kSubgroup)
    f.block = std::min(std::bit_floor(caps.subgroup_min), f.workgroup);
  return f;
}

template <FoldRoute R>
Status gemv(const Node& n, Plan& p, QLinear d) {
  PTERYX_TRY(use_vectors(n, p, d));
  const Fold f = gemv_fold(d, R, p.caps());
  const uint32_t rows = std::bit_ceil(std::max(u32(d.m), 1U));
  Pieces parts = pieces(d, false, f.options().set("rows", rows));
  const Params params = make_params(d);
  return p.dispatch(n, {.shader = &shaders::qlinear_gemv,
                        .options = std::move(parts.options),
                        .bind = std::move(parts.bind),
                        .params = bytes_of(params),
                        .grid = d.m == 0 ? gpu::Grid{0, 1, 1} : f.grid(up(d.n, 4), p.caps())});
}

// Too few tiles for the GPU: cut k, so that parts of it run at once.
int64_t splits_of(const QLinear& d, int64_t tiles, const gpu::Caps& caps) {
  const int64_t enough = 2 * int64_t{caps.sizes.processors};
  if (tiles == 0 || tiles * 2 > enough || d.k < 1024) return 1;
  return std::min({d.k / 256, enough / tiles, int64_t{16}});
}

template <int64_t Thread>
Status tiled(const Node& n, Plan& p, QLinear d) {
  PTERYX_TRY(use_vectors(n, p, d));
  constexpr int64_t kTile = Thread * 16;
  const int64_t tiles = up(d.m, kTile) * up(d.n, kTile);
  const int64_t splits = splits_of(d, tiles, p.caps());
  // Several results would make the code of each of an invocation's results long: a merge shares
  // them out.
  const bool merged = splits > 1 || !d.more.empty();
  auto params = make_params(d);
  QLinear first = d;
  if (merged) {
    first.y = p.scratch(DType::kF32, {splits, d.m, d.n});
    first.more.clear();
    params.splits = u32(splits);
    params.chunk = u32(up(up(d.k, splits), 32) * 32);
  }
  Pieces parts = pieces(first, merged, {{"thread", Thread}});
  PTERYX_TRY(p.dispatch(n, {.shader = &shaders::qlinear_tiled,
                            .options = std::move(parts.options),
                            .variant = Thread == 8 ? "large" : "",
                            .bind = std::move(parts.bind),
                            .params = bytes_of(params),
                            .grid = per_group(tiles * splits, p.caps())}));
  return merged ? plan_merge(n, p, d, {.sums = first.y, .splits = splits}) : ok_status();
}

// ---------------------------------------------------------------- choice

template <Product P>
Status plan(const Node& n, Plan& p) {
  return plan_around(n, p, P);
}

bool fits_gemv(const Node& n, const gpu::Caps& caps) {
  const auto d = describe_qlinear(n);
  return d.ok() && d->m <= kMaxGemvRows && has_vectors(n, *d) && caps.max_invocations >= 256;
}
bool fits_gemv_subgroup(const Node& n, const gpu::Caps& caps) {
  return fits_gemv(n, caps) && fits_subgroup_fold(n, caps);
}
// Below these sizes most of a tile would be empty, and another route is always better.
template <int64_t Thread>
bool fits_tiled(const Node& n, const gpu::Caps& caps) {
  const auto d = describe_qlinear(n);
  const bool filled = d.ok() && (Thread == 4 ? d->m > 4 : d->m > 32 && d->n > 32);
  return filled && has_vectors(n, *d) && caps.max_invocations >= 256 &&
         caps.max_workgroup_bytes >= 16384;
}
// Large tiles pay once there are enough of them for every processor of the GPU.
bool suits_large(const Node& n, const gpu::Caps& /*caps*/) {
  const auto d = describe_qlinear(n);
  return d.ok() && d->m > 64 && up(d->m, 128) * up(d->n, 128) >= 64;
}
bool never(const Node& /*n*/, const gpu::Caps& /*caps*/) { return false; }

template <MatrixSize Size>
constexpr Route matrix_route(std::string_view name) {
  return {name, fits_subgroup_matrix<Size>, plan_subgroup_matrix<Size>, suits_subgroup_matrix<Size>,
          Precision::kF16};
}

constexpr Route kRoutes[] = {
    {"gemv_dot4", fits_dot4, plan_dot4},
    {"gemv_subgroup", fits_gemv_subgroup, plan<gemv<FoldRoute::kSubgroup>>},
    {"gemv", fits_gemv, plan<gemv<FoldRoute::kTree>>},
    matrix_route<MatrixSize::kLarge>("matrix"),
    matrix_route<MatrixSize::kSmall>("matrix_small"),
    matrix_route<MatrixSize::kFew>("matrix_few"),
    {"tiled_f16", fits_tiled_f16, plan_tiled_f16, nullptr, Precision::kF16},
    {"tiled_large", fits_tiled<8>, plan<tiled<8>>, suits_large},
    {"tiled", fits_tiled<4>, plan<tiled<4>>},
    {"naive", nullptr, plan<naive>, never},
};

}  // namespace

std::span<const Route> qlinear_routes() { return kRoutes; }

}  // namespace pteryx::ops
