// Attention of many query rows: a workgroup keeps a block of them and walks over the keys in tiles.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/attention/kernel.h"
#include "pteryx/ops/shaders/attention_tiled.h"

namespace pteryx::ops::attention {
namespace {

constexpr int64_t kBlockRows = 64;      // of a workgroup of the tiled route
constexpr int64_t kTiledMaxSize = 256;  // beyond, its sums do not stay in registers

// How attention_tiled uses workgroup memory.
struct Tile {
  int64_t keys = 0;  // 0: it does not fit
  bool staged = false;
};
Tile tile_of(int64_t size, const gpu::Caps& caps) {
  const auto limit = static_cast<int64_t>(caps.max_workgroup_bytes);
  const int64_t row = 16 * (quads(size) + 1);
  for (const int64_t keys : {32, 16, 8}) {
    const int64_t bytes = keys * (row + 16 * kBlockRows / 4) + 16;
    if (bytes <= limit) return {keys, keys == 32 && bytes + kBlockRows * row <= limit};
  }
  return {};
}

}  // namespace

Status plan_tiled(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Attention a, read_attention(n));
  PTERYX_TRY(plan_new_rows(n, p));
  const int64_t items = a.batch * a.heads * ((a.rows + kBlockRows - 1) / kBlockRows);
  const LiveInt start = start_of(n);
  const auto params =
      make_params<shaders::AttentionTiledParams>(a, start, items, {.count = 1, .keys = a.capacity});
  const Tile tile = tile_of(a.size, p.caps());
  const std::string text =
      call_functions(a) +
      fmt::format("const tile: u32 = {}u;\nconst staged: bool = {};\n", tile.keys, tile.staged) +
      put_function("y", n.out(), vectors(a));
  std::vector<Bind> bind = call_bindings(a);
  bind.push_back(writer("y", n.out(), vectors(a)));
  return p.dispatch(n, {.shader = &shaders::attention_tiled,
                        .prelude = text,
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .live = {start},
                        .grid = per_group(items, p.caps())});
}

bool fits_tiled(const Node& n, const gpu::Caps& caps) {
  const int64_t size = n.in(0).dim(-1);
  return size <= kTiledMaxSize && tile_of(size, caps).keys > 0;
}

}  // namespace pteryx::ops::attention
