// Matrix products in tiles by plain arithmetic: which tile, into how many parts k is cut, and the
// plan of it. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <limits>

#include "pteryx/ops/matmul/kernels.h"
#include "pteryx/ops/matmul/routes.h"
#include "pteryx/ops/shaders/matmul_tiled.h"

namespace pteryx::ops::matmul {
namespace {

constexpr int64_t kDepth = 16;  // of k, for which a team has tiles of a and b

constexpr std::array<const Tile*, 7> kTiles = {&kLargeTile, &kWideTile,   &kSmallTile, &k56x128,
                                               &k40x128,    &k56x96Teams, &k40x64Teams};

// Workgroups that fill the GPU; more than its processors hold, as they are small.
int64_t enough_tiles(const gpu::Caps& caps) { return int64_t{caps.sizes.processors} * 9 / 4; }

// Large tiles pay once there are enough of them for every processor of the GPU.
bool suits_tile(const MatMul& d, const Tile& tile, const gpu::Caps& caps) {
  return &tile != &kLargeTile || (d.m > 64 && tile.count(d) * 3 >= enough_tiles(caps) * 2);
}

// How k is cut: into splits, which are workgroups of their own and leave sums to be merged, each as
// long as `chunk`.
struct Cut {
  const Tile* tile = &kSmallTile;
  int64_t teams = 1;
  int64_t splits = 1;
  double time = std::numeric_limits<double>::infinity();

  int64_t chunk(int64_t k) const {
    const int64_t depth = kDepth * teams;
    return up(up(k, splits), depth) * depth;
  }
};

// The time of a cut in multiply-adds that one processor could have made meanwhile. Factors are
// those that an H200 shows; others have processors and memory in similar proportion.
double time_of(const MatMul& d, const Cut& c, const gpu::Caps& caps) {
  constexpr double kShared = 1.25;    // an element of workgroup memory
  constexpr double kLoad = 20;        // an element of a or b
  constexpr double kStart = 200'000;  // until the first tile is there, and from the last to y
  constexpr double kMerge = 700'000;  // a dispatch more
  constexpr double kPart = 42;        // an element of a part, written and read
  constexpr double kTeams = 1.4;      // that wait for each other at every step
  constexpr int64_t kHeld = 512;      // invocations with that many registers
  constexpr std::array<double, 3> kBusy = {0.6, 0.85, 1};  // by 128 invocations
  const Tile& t = *c.tile;
  const auto number = [](int64_t v) { return static_cast<double>(v); };
  const int64_t processors = caps.sizes.processors;
  const int64_t rounds = up(t.count(d) * c.splits, processors);  // of the busiest processor
  const int64_t group = t.team() * c.teams;
  const int64_t at_once = std::clamp<int64_t>(rounds, 1, std::max<int64_t>(kHeld / group, 1));
  const double busy =
      kBusy[static_cast<size_t>(std::clamp<int64_t>(at_once * group / 128, 1, 3)) - 1];
  const double per_k =
      number(t.rows() * t.columns()) *
          (1 + kShared * number(t.thread_m + t.thread_n) / number(t.thread_m * t.thread_n)) +
      kLoad * number(t.rows() + t.columns());
  const double products = number(rounds * c.chunk(d.k)) * per_k / busy * (c.teams > 1 ? kTeams : 1);
  const double starts = kStart * number(up(rounds, at_once));
  const double merge = c.splits == 1 ? 0
                                     : kMerge + kPart * number(c.splits * d.batches * d.m * d.n) /
                                                    number(processors);
  return products + starts + merge;
}

Cut cut_of(const MatMul& d, const Tile& tile, const gpu::Caps& caps) {
  constexpr int64_t kLeastPart = 128;  // of k
  constexpr int64_t kMostSplits = 16;
  Cut best{.tile = &tile, .teams = tile.teams(caps)};
  const bool enough = tile.count(d) * 2 > enough_tiles(caps);
  const int64_t most = enough ? 1 : std::clamp<int64_t>(d.k / kLeastPart, 1, kMostSplits);
  for (int64_t s = 1; s <= most; ++s) {
    Cut c{.tile = &tile, .teams = best.teams, .splits = s};
    c.time = time_of(d, c, caps);
    if (c.time < best.time) best = c;
  }
  return best;
}

Status plan_cut(const Node& n, Plan& p, const MatMul& d, const Cut& c) {
  const Tile& tile = *c.tile;
  auto params = make_params(d);
  MatMul first = d;
  if (c.splits > 1) {
    first = d.unfinished(p.scratch(DType::kF32, {c.splits, d.batches, d.m, d.n}));
    params.splits = u32(c.splits);
    params.chunk = u32(c.chunk(d.k));
  }
  Operands operands;
  operands.add_a(d).add_b(d, Loads::kFours).add_y(first);
  const int64_t across = tile.threads_n % 16 == 0 && tile.most_teams == 1 ? 16 : 4;
  operands.options.set("thread_m", tile.thread_m)
      .set("thread_n", tile.thread_n)
      .set("threads_m", tile.threads_m)
      .set("threads_n", tile.threads_n)
      .set("teams", c.teams)
      .set("across", across)
      .set("along_k", d.b_along_k() ? 1 : 0)
      .set("finished", c.splits == 1 ? 1 : 0);
  PTERYX_TRY(p.dispatch(n, {.shader = &shaders::matmul_tiled,
                            .options = std::move(operands.options),
                            .variant = tile.name,
                            .bind = std::move(operands.bind),
                            .params = bytes_of(params),
                            .grid = per_group(tile.count(d) * c.splits, p.caps())}));
  return c.splits > 1 ? plan_merge(n, p, d, first.y, c.splits, 1, 1) : ok_status();
}

}  // namespace

int64_t Tile::teams(const gpu::Caps& caps) const {
  return std::min({most_teams, caps.max_invocations / team(),
                   int64_t{caps.max_workgroup_bytes} / team_bytes()});
}
int64_t Tile::count(const MatMul& d) const {
  return d.batches * up(d.m, rows()) * up(d.n, columns());
}

// Below these sizes most of a tile would be empty, or there are too few for its shape to matter.
bool fits_tile(const MatMul& d, const Tile& tile, const gpu::Caps& caps) {
  constexpr int64_t kFew = 16384;  // results
  const int64_t teams = tile.teams(caps);
  if (teams == 0 || (tile.most_teams > 1 && teams == 1)) return false;
  if (&tile == &kSmallTile) return d.m > 4;
  const bool large = &tile == &kLargeTile || &tile == &kWideTile;
  return d.m > 32 && d.n > 32 && (large || d.m * d.n >= kFew);
}

bool fits_any_tile(const MatMul& d, const gpu::Caps& caps) {
  return std::ranges::any_of(kTiles, [&](const Tile* t) { return fits_tile(d, *t, caps); });
}

Status plan_best_tile(const Node& n, Plan& p, const MatMul& d) {
  constexpr double kSame = 0.97;  // what is known better comes first
  Cut best;
  for (const Tile* t : kTiles) {
    if (!fits_tile(d, *t, p.caps()) || !suits_tile(d, *t, p.caps())) continue;
    const Cut c = cut_of(d, *t, p.caps());
    if (c.time < best.time * kSame) best = c;
  }
  return plan_cut(n, p, d, best);
}

Status plan_tile(const Node& n, Plan& p, const MatMul& d, const Tile& tile) {
  return plan_cut(n, p, d, cut_of(d, tile, p.caps()));
}

}  // namespace pteryx::ops::matmul
