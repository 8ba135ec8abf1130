// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/matrix_tile.h"

#include <algorithm>

#include <fmt/format.h>

#include "pteryx/ops/kernel/library.h"
#include "pteryx/ops/shaders/matrix_ops.h"

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

std::string matrix_sums_text(int64_t tile) {
  const int64_t pieces = tile / 32;
  std::string members = "struct Sums {\n";
  std::string clear = "fn clear_sums(sums: ptr<function, Sums>) {\n";
  std::string step = "fn multiply_step(sums: ptr<function, Sums>, m: u32, n: u32, s: u32) {\n";
  std::string store =
      "fn store_piece(sums: ptr<function, Sums>, offset: u32, piece: u32) {\n  switch (piece) {\n";
  for (int64_t i = 0; i < pieces; ++i)
    step += fmt::format("  let left{0} = load_left((m + {1}u) * wide_a + s * 2u);\n", i, i * 16);
  for (int64_t j = 0; j < pieces; ++j) {
    step += fmt::format(
        "  let right{0} = load_right(select(s * 16u * wide_b + (n + {1}u) / 8u, (n + {1}u) * "
        "wide_b "
        "+ s * 2u, along_k));\n",
        j, j * 16);
    for (int64_t i = 0; i < pieces; ++i) {
      const int64_t k = i * pieces + j;
      members += fmt::format("  sum{}: sum_matrix,\n", k);
      clear += fmt::format("  (*sums).sum{} = sum_matrix();\n", k);
      step += fmt::format("  (*sums).sum{0} = multiply_add(left{1}, right{2}, (*sums).sum{0});\n",
                          k, i, j);
      store += fmt::format("    case {0}u: {{ store_sum(offset, (*sums).sum{0}); }}\n", k);
    }
  }
  store += "    default: {}\n  }\n";
  return members + "}\n" + clear + "}\n" + step + "}\n" + store + "}\n";
}

MatrixTiles matrix_tiles(int64_t tile, int64_t batches, int64_t m, int64_t n, int64_t k) {
  MatrixTiles t{.tile = tile, .tiles = batches * up(m, tile) * up(n, tile), .chunk = matrix_row(k)};
  const int64_t busy = tile == 128 ? kProcessors : kProcessors * 2;
  if (t.tiles == 0 || k < 512) return t;
  t.splits = std::clamp<int64_t>(std::min(busy / t.tiles, k / 256), 1, 4);
  t.chunk = up(up(k, t.splits), 64) * 64;
  return t;
}

Status dispatch_matrix(const Node& n, Plan& p, const MatrixTiles& t, const Shader& shader,
                       std::string_view text, std::vector<Bind> bind, Bytes params) {
  const std::string prelude = fmt::format("const tile: u32 = {}u;\n{}{}{}", t.tile, text,
                                          text_of(shaders::matrix_ops), matrix_sums_text(t.tile));
  return p.dispatch(n, {.shader = &shader,
                        .variant = t.tile == 128 ? "128" : "64",
                        .prelude = prelude,
                        .bind = std::move(bind),
                        .params = params,
                        .grid = per_group(t.tiles * t.splits, p.caps()),
                        .f16 = true,
                        .subgroups = true,
                        .subgroup_matrix = true});
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
