// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/matrix_tile.h"

#include <algorithm>

namespace pteryx::ops {
namespace {

int64_t up(int64_t n, int64_t step) { return (n + step - 1) / step; }

// Processors of a large GPU; a tile each keeps it busy.
constexpr int64_t kProcessors = 128;

}  // namespace

std::string_view halves_text(KOrder order) {
  switch (order) {
    case KOrder::kHalves:
      return "fn halves(low: vec4<f32>, high: vec4<f32>) -> vec4<u32> {\n"
             "  return vec4<u32>(pack2x16float(vec2<f32>(low.x, high.x)), "
             "pack2x16float(vec2<f32>(low.y, high.y)),\n"
             "                   pack2x16float(vec2<f32>(low.z, high.z)), "
             "pack2x16float(vec2<f32>(low.w, high.w)));\n}\n";
    case KOrder::kEvens:
      return "fn halves(low: vec4<f32>, high: vec4<f32>) -> vec4<u32> {\n"
             "  return vec4<u32>(pack2x16float(low.xz), pack2x16float(low.yw), "
             "pack2x16float(high.xz), pack2x16float(high.yw));\n}\n";
    case KOrder::kNatural: break;
  }
  return "fn halves(low: vec4<f32>, high: vec4<f32>) -> vec4<u32> {\n"
         "  return vec4<u32>(pack2x16float(low.xy), pack2x16float(low.zw), "
         "pack2x16float(high.xy), pack2x16float(high.zw));\n}\n";
}

MatrixTiles matrix_tiles(int64_t tile, int64_t batches, int64_t m, int64_t n, int64_t k) {
  MatrixTiles t{.tile = tile, .tiles = batches * up(m, tile) * up(n, tile), .chunk = matrix_row(k)};
  const int64_t busy = tile == 128 ? kProcessors : kProcessors * 2;
  if (t.tiles == 0 || k < 512) return t;
  t.splits = std::clamp<int64_t>(std::min(busy / t.tiles, k / 256), 1, 4);
  t.chunk = up(up(k, t.splits), 64) * 64;
  return t;
}

bool suits_matrix(int64_t tile, int64_t batches, int64_t m, int64_t n) {
  const bool large = batches * up(m, 128) * up(n, 128) >= 24 && m > 64;
  return large == (tile == 128);
}

bool has_matrix(int64_t tile, const gpu::Caps& caps) {
  const int64_t bytes = 2 * tile * (64 / 8 + 1) * 16 + 4 * 256 * 4;
  return caps.subgroup_matrix && caps.f16 && caps.subgroup_min == 32 && caps.subgroup_max == 32 &&
         caps.max_workgroup_bytes >= bytes && caps.max_invocations >= 128;
}

}  // namespace pteryx::ops
