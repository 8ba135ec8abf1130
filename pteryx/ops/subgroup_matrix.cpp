// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/subgroup_matrix.h"

#include <algorithm>

#include <fmt/format.h>

namespace pteryx::ops {
namespace {

int64_t up(int64_t n, int64_t step) { return (n + step - 1) / step; }

constexpr int64_t kLeastK = 256;  // of a part
constexpr int64_t kLongK = 1024;  // of a part of a large tile that has few others beside it
// What options of the kernels hold.
constexpr int64_t kMostK = int64_t{1} << 20;
constexpr int64_t kMostN = int64_t{1} << 24;

MatrixTile tile_of(MatrixSize size, const MatrixProduct& d, const gpu::Caps& caps) {
  MatrixTile t;
  if (size == MatrixSize::kSmall) {
    t.pieces_m = t.pieces_n = 2;
  } else if (size == MatrixSize::kFew) {
    t.pieces_m = std::clamp<int64_t>(up(d.m, 16), 1, 4);
    t.subgroups_m = 1;
    // Half as many columns where cutting k alone would leave more than a few processors idle.
    const int64_t parts = d.batches * up(d.n, 128) * (d.k / 512);
    const bool narrow = parts * 16 < 2 * int64_t{caps.sizes.processors} * 15;
    t.pieces_n = narrow && !d.paired ? 1 : 2;
    t.depth = narrow && d.k % 128 == 0 ? 128 : 64;
  }
  while (t.depth > 32 && t.workgroup_bytes() > caps.max_workgroup_bytes) t.depth /= 2;
  return t;
}

int64_t splits_of(MatrixSize size, const MatrixProduct& d, int64_t tiles, int64_t steps,
                  int64_t depth, const gpu::Caps& caps) {
  const int64_t k = d.k;
  // Tiles that keep a GPU busy: one of the large for each of its processors, two of the others.
  // Parts of pairs cost twice their results.
  const bool once = size == MatrixSize::kLarge || (d.paired && d.m > kMatrixFewRows / 2);
  const int64_t busy = int64_t{caps.sizes.processors} * (once ? 1 : 2);
  const int64_t most = size == MatrixSize::kFew ? 16 : size == MatrixSize::kLarge ? 8 : 4;
  if (tiles == 0 || k < 2 * kLeastK) return 1;
  int64_t splits = std::min({busy / tiles, most, steps * depth / kLeastK});
  while (splits > 1 && steps % splits != 0) --splits;  // all parts have as many steps
  return std::max<int64_t>(splits, 1);
}

}  // namespace

int64_t MatrixTile::workgroup_bytes() const {
  const int64_t columns_n = 4 / subgroups_m;
  const int64_t wide = depth / 8 + 1;
  const int64_t a = rows() * wide;
  const int64_t b = std::max(columns() * wide, depth * columns_n * (pieces_n * 2 + 1));
  const int64_t y = 4 * 16 * 9;
  return (a + b + y) * 16;
}

std::string MatrixTile::name() const { return fmt::format("{}x{}x{}", rows(), columns(), depth); }

bool MatrixPlan::queue(const gpu::Caps& caps) const {
  return tiles * splits > 2 * int64_t{caps.sizes.processors};
}

Options MatrixPlan::options(bool k_is_constant) const {
  return {{"pieces_m", tile.pieces_m},          {"pieces_n", tile.pieces_n},
          {"subgroups_m", tile.subgroups_m},    {"depth_sixteens", tile.depth / 16},
          {"steps", k_is_constant ? steps : 0}, {"splits", k_is_constant ? splits : 1}};
}

bool stores_whole_matrices(const gpu::Caps& caps) { return !caps.bounds_checks; }

std::string store_of_parts(const gpu::Caps& caps) {
  return stores_whole_matrices(caps) ? "parts" : "part_fours";
}

bool has_matrix(MatrixSize size, const MatrixProduct& d, const gpu::Caps& caps) {
  if (d.m < kMatrixMinRows || d.k < 1 || d.k > kMostK || d.n > kMostN) return false;
  if (size == MatrixSize::kFew && d.m > kMatrixFewRows) return false;
  return caps.subgroup_matrix && caps.f16 && caps.subgroup_min == 32 && caps.subgroup_max == 32 &&
         tile_of(size, d, caps).workgroup_bytes() <= caps.max_workgroup_bytes &&
         caps.max_invocations >= 128;
}

bool suits_matrix(MatrixSize size, const MatrixProduct& d, const gpu::Caps& caps) {
  if (d.m <= kMatrixFewRows) return size == MatrixSize::kFew;
  // Few large tiles still pay where k is long enough to be cut for every processor.
  const int64_t tiles = d.batches * up(d.m, 128) * up(d.n, 128);
  const int64_t all = caps.sizes.processors;
  const bool large = tiles * 11 >= all * 2 || tiles * (d.k / kLongK) * 16 >= all * 15;
  return size == (large ? MatrixSize::kLarge : MatrixSize::kSmall);
}

MatrixPlan plan_matrix(MatrixSize size, const MatrixProduct& d, const gpu::Caps& caps) {
  MatrixPlan p{.tile = tile_of(size, d, caps)};
  p.tiles = d.batches * up(d.m, p.tile.rows()) * up(d.n, p.tile.columns());
  const int64_t steps = std::max<int64_t>(up(d.k, p.tile.depth), 1);
  p.splits = splits_of(size, d, p.tiles, steps, p.tile.depth, caps);
  p.steps = steps / p.splits;
  return p;
}

}  // namespace pteryx::ops
