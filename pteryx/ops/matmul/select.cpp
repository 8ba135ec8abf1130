// How a matrix product runs on the GPU: plans of the routes, and the choice of one.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <bit>

#include "pteryx/ops/fold.h"
#include "pteryx/ops/matmul/kernels.h"
#include "pteryx/ops/matmul/routes.h"
#include "pteryx/ops/shaders/matmul_gemv.h"
#include "pteryx/ops/shaders/matmul_gemv_columns.h"
#include "pteryx/ops/shaders/matmul_gemv_subgroup.h"
#include "pteryx/ops/shaders/matmul_naive.h"
#include "pteryx/ops/shaders/matmul_tiled.h"

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

// Workgroups that fill the GPU; more than its processors hold, as they are small.
int64_t enough_tiles(const gpu::Caps& caps) { return int64_t{caps.sizes.processors} * 9 / 4; }

// Too few tiles for the GPU: cut k, so that parts of it run at once, as many as leave few of the
// GPU's processors without work in the last round; each wants several workgroups, so that one has
// what another waits for.
int64_t splits_of(const MatMul& d, const Tile& tile, const gpu::Caps& caps) {
  constexpr int64_t kLeastPart = 128;  // of k
  constexpr int64_t kMostSplits = 16;
  constexpr std::array<double, 3> kBusy = {0.6, 0.85, 1};  // by workgroups of a processor
  constexpr double kMerge = 0.02;                          // what another part costs
  const int64_t tiles = tile.count(d);
  const int64_t processors = caps.sizes.processors;
  if (tiles == 0 || tiles * 2 > enough_tiles(caps)) return 1;
  int64_t best = 1;
  double best_use = 0;
  for (int64_t s = 1; s <= std::clamp<int64_t>(d.k / kLeastPart, 1, kMostSplits); ++s) {
    const int64_t rounds = up(tiles * s, processors);
    const double filled = static_cast<double>(tiles * s) / static_cast<double>(rounds * processors);
    const double use = filled * kBusy[static_cast<size_t>(std::min<int64_t>(rounds, 3) - 1)] -
                       kMerge * static_cast<double>(s);
    if (rounds <= 3 && use > best_use) {
      best = s;
      best_use = use;
    }
  }
  return best;
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

int64_t Tile::count(const MatMul& d) const {
  return d.batches * up(d.m, rows()) * up(d.n, columns());
}

template <const Tile& tile>
Status plan_tiled(const Node& n, Plan& p, const MatMul& d) {
  const int64_t splits = splits_of(d, tile, p.caps());
  auto params = make_params(d);
  MatMul first = d;
  if (splits > 1) {
    first = d.unfinished(p.scratch(DType::kF32, {splits, d.batches, d.m, d.n}));
    params.splits = u32(splits);
    params.chunk = u32(up(up(d.k, splits), 16) * 16);
  }
  Operands operands;
  operands.add_a(d).add_b(d, Loads::kFours).add_y(first);
  operands.options.set("thread_fours", tile.thread / 4)
      .set("threads_m", tile.threads_m)
      .set("along_k", d.b_along_k() ? 1 : 0)
      .set("finished", splits == 1 ? 1 : 0);
  PTERYX_TRY(p.dispatch(n, {.shader = &shaders::matmul_tiled,
                            .options = std::move(operands.options),
                            .variant = tile.name,
                            .bind = std::move(operands.bind),
                            .params = bytes_of(params),
                            .grid = per_group(tile.count(d) * splits, p.caps())}));
  return splits > 1 ? plan_merge(n, p, d, first.y, splits, 1, 1) : ok_status();
}

template Status plan_tiled<kLargeTile>(const Node&, Plan&, const MatMul&);
template Status plan_tiled<kWideTile>(const Node&, Plan&, const MatMul&);
template Status plan_tiled<kSmallTile>(const Node&, Plan&, const MatMul&);

// ---------------------------------------------------------------- choice

bool fits_gemv(const MatMul& d, const gpu::Caps& caps) {
  return d.m <= kMaxGemvRows && caps.max_invocations >= 256;
}
bool fits_gemv_subgroup(const MatMul& d, const gpu::Caps& caps) {
  return fits_gemv(d, caps) && has_subgroup_fold(caps) && d.b_along_k();
}
// Below these sizes most of a tile would be empty, and another route is always better.
template <const Tile& tile>
bool fits_tiled(const MatMul& d, const gpu::Caps& caps) {
  const bool filled = tile.thread == 4 ? d.m > 4 : d.m > 32 && d.n > 32;
  return filled && caps.max_invocations >= tile.threads_m * 16 &&
         caps.max_workgroup_bytes >= tile.workgroup_bytes();
}
template bool fits_tiled<kLargeTile>(const MatMul&, const gpu::Caps&);
template bool fits_tiled<kWideTile>(const MatMul&, const gpu::Caps&);
template bool fits_tiled<kSmallTile>(const MatMul&, const gpu::Caps&);
// Large tiles pay once there are enough of them for every processor of the GPU, with k cut.
bool suits_large(const MatMul& d, const gpu::Caps& caps) {
  return d.m > 64 && kLargeTile.count(d) * 3 >= enough_tiles(caps) * 2;
}
// 4 x 4 results an invocation are bound by workgroup memory: only where half of a tile would be
// idle.
bool suits_wide(const MatMul& d, const gpu::Caps& /*caps*/) { return d.m > 32 && d.n > 64; }
bool fits_naive(const MatMul& /*d*/, const gpu::Caps& /*caps*/) { return true; }
bool suits_naive(const MatMul& /*d*/, const gpu::Caps& /*caps*/) { return false; }

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
