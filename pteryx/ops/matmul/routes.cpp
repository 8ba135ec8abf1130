// How a matrix product runs on the GPU: plans of the routes, and the choice of one.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>

#include "pteryx/ops/fold.h"
#include "pteryx/ops/kernel/library.h"
#include "pteryx/ops/matmul/matrix.h"
#include "pteryx/ops/matmul/texts.h"
#include "pteryx/ops/shaders/fold_many.h"
#include "pteryx/ops/shaders/matmul_gemv.h"
#include "pteryx/ops/shaders/matmul_gemv_columns.h"
#include "pteryx/ops/shaders/matmul_gemv_subgroup.h"
#include "pteryx/ops/shaders/matmul_naive.h"
#include "pteryx/ops/shaders/matmul_tiled.h"

namespace pteryx::ops {
namespace {

using namespace matmul;

constexpr int64_t kMaxGemvRows = 8;
// Enough invocations to hide the latency of memory on the largest GPUs.
constexpr int64_t kEnoughInvocations = 131072;

Status plan_naive(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const MatMul d, describe_matmul(n));
  const auto params = make_params(d);
  std::vector<Bind> bind = {{"a", d.a.tensor}, {"b", d.b.tensor}};
  if (d.add) bind.push_back({"add", d.add->tensor});
  bind.push_back({"y", d.y, Access::kWords});
  const std::string prelude = epilogue_text(d);
  return p.dispatch(n, {.shader = &shaders::matmul_naive,
                        .prelude = prelude,
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .grid = per_element(words(d.y.numel(), d.y.dtype), p.caps())});
}

Status plan_gemv_columns(const Node& n, Plan& p, const MatMul& d, uint32_t rows) {
  const Fold f{.team = 32, .workgroup = 256};
  Pieces parts = pieces(d, fmt::format("const rows: u32 = {}u;\n{}", rows, f.prelude()));
  const auto params = make_params(d);
  return p.dispatch(n, {.shader = &shaders::matmul_gemv_columns,
                        .prelude = parts.prelude,
                        .bind = std::move(parts.bind),
                        .params = bytes_of(params),
                        .grid = per_group(d.batches * up(d.n, 32), p.caps())});
}

// fn b8 of matmul_gemv_subgroup.wgsl.
std::string b8_text(const Fetch& b) {
  if (!in_eights(b)) {
    return fetch_text(b) +
           "fn b8(base: u32, n: u32, k: u32) -> array<vec4<f32>, 2> {\n"
           "  return array<vec4<f32>, 2>(b4(base, n, k), b4(base, n, k + 4u));\n}\n";
  }
  return "fn b8(base: u32, n: u32, k: u32) -> array<vec4<f32>, 2> {\n"
         "  let w = b[(base + min(n, params.n - 1u) * params.b_column + k) / 8u];\n"
         "  return array<vec4<f32>, 2>(vec4<f32>(unpack2x16float(w.x), unpack2x16float(w.y)),\n"
         "                             vec4<f32>(unpack2x16float(w.z), "
         "unpack2x16float(w.w)));\n}\n";
}

Status plan_gemv_subgroup(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const MatMul d, describe_matmul(n));
  if (d.m == 0) return {};
  const int64_t units = d.batches * up(d.n, 4);
  Fold f{
      .team = 32, .workgroup = 128, .block = std::bit_floor(std::min(p.caps().subgroup_min, 32U))};
  // Small products need more invocations for each result to keep the memory busy.
  while (f.team < 256 && f.team * 8 < d.k && units * f.team < kEnoughInvocations) f.team *= 2;
  f.workgroup = std::max(f.workgroup, f.team);
  const Fetch a = fetch_a(d);
  const Fetch b = fetch_b(d);
  const Access access = row_access(d.y.dtype, d.n);
  const std::string prelude = fmt::format(
      "const rows: u32 = {}u;\nconst team: u32 = {}u;\nconst wg_size: u32 = {}u;\n"
      "const block: u32 = {}u;\nconst fours: u32 = rows;\n{}{}{}{}{}",
      d.m, f.team, f.workgroup, f.block, fetch_text(a), b8_text(b), epilogue_text(d),
      put_text(access, d.y.dtype, kFinished), text_of(shaders::fold_many));
  std::vector<Bind> bind = {bind_operand(a, d.a.tensor), bind_operand(b, d.b.tensor)};
  if (in_eights(b)) bind[1] = {"b", d.b.tensor, Access::kRawRead, "vec4<u32>"};
  if (d.add) bind.push_back({"add", d.add->tensor});
  bind.push_back({"y", d.y, access});
  const auto params = make_params(d);
  return p.dispatch(n, {.shader = &shaders::matmul_gemv_subgroup,
                        .prelude = prelude,
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .grid = f.grid(units, p.caps()),
                        .subgroups = true});
}

Status plan_gemv(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const MatMul d, describe_matmul(n));
  if (d.m == 0) return {};
  const auto rows = std::bit_ceil(u32(d.m));
  if (!d.b_along_k()) return plan_gemv_columns(n, p, d, rows);
  // Small products need more invocations for each result to keep the memory busy.
  const int64_t units = d.batches * up(d.n, 4);
  const bool wide = units * 32 < kEnoughInvocations && d.k >= 2048;
  const Fold f = make_fold(FoldRoute::kTree, wide ? 1024 : 256, 256, p.caps());
  Pieces parts = pieces(d, fmt::format("const rows: u32 = {}u;\n{}", rows, f.prelude()));
  const auto params = make_params(d);
  return p.dispatch(n, {.shader = &shaders::matmul_gemv,
                        .prelude = parts.prelude,
                        .bind = std::move(parts.bind),
                        .params = bytes_of(params),
                        .grid = f.grid(units, p.caps())});
}

// Too few tiles for the GPU: cut k, so that parts of it run at once.
int64_t splits_of(const MatMul& d, int64_t tiles) {
  constexpr int64_t kEnoughTiles = 256;
  if (tiles == 0 || tiles * 2 > kEnoughTiles || d.k < 1024) return 1;
  return std::min({d.k / 256, kEnoughTiles / tiles, int64_t{16}});
}

template <int64_t ThreadTile>
Status plan_tiled(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const MatMul d, describe_matmul(n));
  constexpr int64_t kTile = ThreadTile * 16;
  const int64_t tiles = d.batches * up(d.m, kTile) * up(d.n, kTile);
  const int64_t splits = splits_of(d, tiles);
  const std::string text =
      fmt::format("const thread_m: u32 = {0}u;\nconst thread_n: u32 = {0}u;\n", ThreadTile);
  auto params = make_params(d);
  MatMul first = d;
  if (splits > 1) {
    first.add.reset();
    first.alpha = 1;
    first.y = p.scratch(DType::kF32, {splits, d.batches, d.m, d.n});
    params.splits = u32(splits);
    params.chunk = u32(up(up(d.k, splits), 16) * 16);
  }
  Pieces parts = pieces(first, text);
  PTERYX_TRY(p.dispatch(n, {.shader = &shaders::matmul_tiled,
                            .prelude = parts.prelude,
                            .bind = std::move(parts.bind),
                            .params = bytes_of(params),
                            .grid = per_group(tiles * splits, p.caps())}));
  return splits > 1 ? plan_merge(n, p, d, first.y, splits) : ok_status();
}

// ---------------------------------------------------------------- choice

bool fits_gemv(const Node& n, const gpu::Caps& caps) {
  const auto d = describe_matmul(n);
  return d.ok() && d->m <= kMaxGemvRows && caps.max_invocations >= 256;
}
bool fits_gemv_subgroup(const Node& n, const gpu::Caps& caps) {
  const auto d = describe_matmul(n);
  return fits_gemv(n, caps) && fits_subgroup_fold(n, caps) && d.ok() && d->b_along_k();
}
// Below these sizes most of a tile would be empty, and another route is always better.
template <int64_t ThreadTile>
bool fits_tiled(const Node& n, const gpu::Caps& caps) {
  const auto d = describe_matmul(n);
  const bool filled = d.ok() && (ThreadTile == 4 ? d->m > 4 : d->m > 32 && d->n > 32);
  return filled && caps.max_invocations >= 256 &&
         caps.max_workgroup_bytes >= ThreadTile * 16 * 16 * 4 * 2;
}
// Large tiles pay once there are enough of them for every processor of the GPU.
bool suits_large(const Node& n, const gpu::Caps& /*caps*/) {
  const auto d = describe_matmul(n);
  return d.ok() && d->m > 64 && d->batches * up(d->m, 128) * up(d->n, 128) >= 64;
}
bool never(const Node& /*n*/, const gpu::Caps& /*caps*/) { return false; }

constexpr Route kRoutes[] = {
    {"gemv_subgroup", fits_gemv_subgroup, plan_gemv_subgroup},
    {"gemv", fits_gemv, plan_gemv},
    {"matrix", fits_matrix<128>, plan_matrix<128>, suits_matrix<128>, Precision::kF16},
    {"matrix_small", fits_matrix<64>, plan_matrix<64>, suits_matrix<64>, Precision::kF16},
    {"tiled_large", fits_tiled<8>, plan_tiled<8>, suits_large},
    {"tiled", fits_tiled<4>, plan_tiled<4>},
    {"naive", nullptr, plan_naive, never},
};

}  // namespace

std::span<const Route> matmul_routes() { return kRoutes; }

}  // namespace pteryx::ops
