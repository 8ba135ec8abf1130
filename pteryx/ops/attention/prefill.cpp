// Attention of many query rows: a workgroup keeps a block of them and walks over the keys in tiles.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/attention/kernel.h"
#include "pteryx/ops/shaders/attention_tiled.h"

namespace pteryx::ops::attention {
namespace {

constexpr int64_t kBlockRows = 32;      // of a workgroup of the tiled route
constexpr int64_t kTiledMaxSize = 256;  // beyond, its sums do not stay in registers

// Keys of a tile that fit workgroup memory beside their weights; 0: none.
int64_t tile_keys(int64_t size, const gpu::Caps& caps) {
  for (const int64_t keys : {32, 16, 8}) {
    if (keys * 16 * (quads(size) + 1 + 8) <= static_cast<int64_t>(caps.max_workgroup_bytes))
      return keys;
  }
  return 0;
}

}  // namespace

Status plan_tiled(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Attention a, read_attention(n));
  PTERYX_TRY(plan_new_rows(n, p));
  const int64_t items = a.batch * a.heads * ((a.rows + kBlockRows - 1) / kBlockRows);
  const LiveInt start = start_of(n);
  const auto params =
      make_params<shaders::AttentionTiledParams>(a, start, items, {.count = 1, .keys = a.capacity});
  const std::string text = call_functions(a) +
                           fmt::format("const tile: u32 = {}u;\n", tile_keys(a.size, p.caps())) +
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
  return size <= kTiledMaxSize && tile_keys(size, caps) > 0;
}

}  // namespace pteryx::ops::attention
