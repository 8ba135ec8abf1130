// Subgroup matrices in plain WGSL, so that software GPUs run the kernels that use them: the text
// that stands in for calls of subgroup_matrix_sums.wgsl and for attention_matrix_ops.wgsl.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>
#include <utility>

namespace pteryx::ops::testing {

// The calls of common/subgroup_matrix_sums.wgsl and what is behind it, and those that stand in.
inline constexpr std::pair<std::string_view, std::string_view> kProductCalls[] = {
    {"subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&tile_a[own_m], ",
     "load_matrix(own_m, "},
    {"subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, col_major>(&tile_b[own_n], ",
     "load_matrix(own_n, "},
    {"subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&tile_b[own_n], ",
     "load_transposed(own_n, "},
    {"subgroupMatrixMultiplyAccumulate(", "multiply_add("},
    {"subgroupMatrixLoad<subgroup_matrix_result<f32, 16, 16>, row_major>(&residual, ",
     "load_residual("},
    {"subgroup_matrix_result<f32, 16, 16>()", "new_sum()"},
    {"subgroupMatrixStore<row_major>(&tile_y[owner], ", "store_in_tile(owner, "},
    {"subgroupMatrixStore<row_major>(&tile_sums[owner], ", "store_in_sums(owner, "},
    {"workgroupBarrier();", "multiply_all(); workgroupBarrier();"},
    {"let corner = ", "multiply_all();\n  let corner = "},
    {"for (var round = ", "multiply_all();\n  for (var round = "},
};
// Each of 32 invocations has eight elements of every sum. Products are noted down, and made in one
// loop before their operands leave the tiles: text that is written out once compiles much quicker.
inline constexpr std::string_view kProductEmulation = R"(
struct Operand { half: u32, offset: u32, stride: u32, transposed: bool }
struct Product { left: Operand, right: Operand, sum: u32 }
var<private> lane_of_matrix: u32;
var<private> sums: array<f32, 256>;
var<private> sum_count: u32;
var<private> products: array<Product, 64>;
var<private> product_count: u32;

fn new_sum() -> u32 {
  sum_count++;
  return sum_count - 1u;
}
fn load_matrix(half: u32, offset: u32, stride: u32) -> Operand { return Operand(half, offset, stride, false); }
fn load_transposed(half: u32, offset: u32, stride: u32) -> Operand { return Operand(half, offset, stride, true); }
fn multiply_add(left: Operand, right: Operand, sum: u32) -> u32 {
  products[product_count] = Product(left, right, sum);
  product_count++;
  return sum;
}
fn half_of(v: vec4<u32>, i: u32) -> f32 {
  let pair = unpack2x16float(v[i / 2u]);
  return select(pair.x, pair.y, i % 2u == 1u);
}
fn multiply_all() {
  for (var i = 0u; i < product_count * 8u; i++) {
    let p = products[i / 8u];
    let e = lane_of_matrix + i % 8u * 32u;
    let m = e / 16u;
    let n = e % 16u;
    var total = sums[p.sum * 8u + i % 8u];
    for (var k = 0u; k < min(16u, params.k + 16u); k++) {
      let a = half_of(tile_a[p.left.half][p.left.offset + m * p.left.stride + k / 8u], k % 8u);
      let along = select(n, k, p.right.transposed);
      let across = select(k, n, p.right.transposed);
      total += a * half_of(tile_b[p.right.half][p.right.offset + along * p.right.stride + across / 8u], across % 8u);
    }
    sums[p.sum * 8u + i % 8u] = total;
  }
  product_count = 0u;
}
)";
// Into the result {y}.
inline constexpr std::string_view kProductToMemory = R"(
fn store_in_{y}(offset: u32, sum: u32, stride: u32) {{
  for (var i = 0u; i < min(8u, params.k + 8u); i++) {{
    let e = lane_of_matrix + i * 32u;
    {y}[offset + e / 16u * stride + e % 16u] = sums[sum * 8u + i];
  }}
}}
)";
inline constexpr std::string_view kProductToTile = R"(
fn store_in_tile(half: u32, offset: u32, sum: u32, stride: u32) {
  for (var i = 0u; i < min(8u, params.k + 8u); i++) {
    let e = lane_of_matrix + i * 32u;
    tile_y[half][offset + e / 16u * stride + e % 16u / 4u][e % 4u] = sums[sum * 8u + i];
  }
}
)";
inline constexpr std::string_view kProductFromResidual = R"(
fn load_residual(offset: u32, stride: u32) -> u32 {
  let sum = new_sum();
  for (var i = 0u; i < min(8u, params.k + 8u); i++) {
    let e = lane_of_matrix + i * 32u;
    sums[sum * 8u + i] = residual[offset + e / 16u * stride + e % 16u];
  }
  return sum;
}
)";
inline constexpr std::string_view kProductToSums = R"(
fn store_in_sums(half: u32, offset: u32, sum: u32, stride: u32) {
  for (var i = 0u; i < min(8u, params.k + 8u); i++) {
    let e = lane_of_matrix + i * 32u;
    tile_sums[half][offset + e / 16u * stride + e % 16u] = sums[sum * 8u + i];
  }
}
)";
// What attention_matrix.wgsl says of matrices, and what stands for it. Operands are places in the
// tiles; those of q, which outlive their tile, are kept by each invocation as far as it needs them.
struct StandIn {
  std::string_view text;
  std::string_view with;
};
inline constexpr StandIn kAttentionStandIns[] = {
    {"alias left_matrix = subgroup_matrix_left<f16, 16, 16>;", "alias left_matrix = u32;"},
    {"alias right_matrix = subgroup_matrix_right<f16, 16, 16>;", ""},
    {"alias sum_matrix = subgroup_matrix_result<f32, 16, 16>;",
     "struct sum_matrix { low: vec4<f32>, high: vec4<f32> }"},
    {"subgroupMatrixLoad<left_matrix, row_major>(&tile_k, ", "load_q("},
    {"subgroupMatrixLoad<left_matrix, row_major>(&tile_p[owner], ", "load_p("},
    {"subgroupMatrixMultiplyAccumulate(q_", "multiply_q("},
    {"subgroupMatrixMultiplyAccumulate(weights", "multiply_p(owner, weights"},
    {"subgroupMatrixLoad<right_matrix, col_major>(&tile_k, ", "load_right("},
    {"subgroupMatrixLoad<right_matrix, row_major>(&tile_k, ", "load_right("},
    {"subgroupMatrixLoad<right_matrix, row_major>(&tile_v, ", "load_right("},
    {"subgroupMatrixLoad<sum_matrix, row_major>(&tile_s[owner], ", "load_sum(owner, "},
    {"subgroupMatrixStore<row_major>(&tile_s[owner], ", "store_sum(owner, "},
};
// Few indices that change within a loop, and few loops that are unrolled: both are slow to compile.
inline constexpr std::string_view kAttentionEmulation = R"(
var<private> lane_of_matrix: u32;
var<private> q_kept: array<u32, 64u * ((size + 15u) / 16u)>;
var<private> q_count: u32;

fn bound(n: u32) -> u32 { return min(n, n * params.quads); }
fn half_of(word: u32, i: u32) -> f32 {
  let pair_of = unpack2x16float(word);
  return select(pair_of.x, pair_of.y, i % 2u == 1u);
}
// Element i of the eight that an invocation has: rows lane / 16 + 2 i, column lane % 16.
fn row_of(i: u32) -> u32 { return lane_of_matrix / 16u + 2u * i; }
fn with_sum(sum: sum_matrix, i: u32, more: f32) -> sum_matrix {
  let at = vec4<u32>(0u, 1u, 2u, 3u);
  return sum_matrix(sum.low + select(vec4<f32>(0.0), vec4<f32>(more), at == vec4<u32>(i)),
                    sum.high + select(vec4<f32>(0.0), vec4<f32>(more), at + 4u == vec4<u32>(i)));
}
fn load_q(offset: u32, stride: u32) -> left_matrix {
  for (var i = 0u; i < bound(64u); i++) {
    q_kept[q_count * 64u + i] = tile_k[offset + row_of(i / 8u) * stride + i / 4u % 2u][i % 4u];
  }
  q_count++;
  return 0u;
}
fn load_p(offset: u32, stride: u32) -> left_matrix { return offset; }
fn load_right(offset: u32, stride: u32) -> u32 { return offset; }
fn multiply_q(d: u32, right: u32, sum: sum_matrix) -> sum_matrix {
  var total = sum;
  let at = right + lane_of_matrix % 16u * wide_kv;
  for (var i = 0u; i < bound(8u); i++) {
    var more = 0.0;
    for (var k = 0u; k < bound(16u); k++) {
      more += half_of(q_kept[d * 64u + i * 8u + k / 2u], k) * half_of(tile_k[at + k / 8u][k / 2u % 4u], k);
    }
    total = with_sum(total, i, more);
  }
  return total;
}
fn multiply_p(owner: u32, left: u32, right: u32, sum: sum_matrix) -> sum_matrix {
  var total = sum;
  let n = lane_of_matrix % 16u;
  for (var i = 0u; i < bound(8u); i++) {
    var more = 0.0;
    for (var k = 0u; k < bound(16u); k++) {
      more += half_of(tile_p[owner][left + row_of(i) * wide_p + k / 8u][k / 2u % 4u], k) *
              half_of(V_TILE[right + k * wide_kv + n / 8u][n / 2u % 4u], n);
    }
    total = with_sum(total, i, more);
  }
  return total;
}
fn store_sum(owner: u32, offset: u32, sum: sum_matrix, stride: u32) {
  let n = lane_of_matrix % 16u;
  for (var i = 0u; i < bound(8u); i++) {
    let four = select(sum.low, sum.high, i > 3u);
    let one = dot(four, select(vec4<f32>(0.0), vec4<f32>(1.0), vec4<u32>(0u, 1u, 2u, 3u) == vec4<u32>(i % 4u)));
    tile_s[owner][offset + row_of(i) * stride + n / 4u][n % 4u] = one;
  }
}
fn load_sum(owner: u32, offset: u32, stride: u32) -> sum_matrix {
  var total: sum_matrix;
  let n = lane_of_matrix % 16u;
  for (var i = 0u; i < bound(8u); i++) {
    total = with_sum(total, i, tile_s[owner][offset + row_of(i) * stride + n / 4u][n % 4u]);
  }
  return total;
}
)";

}  // namespace pteryx::ops::testing
