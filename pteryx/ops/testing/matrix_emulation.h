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
var<private> sums: array<f32, 128>;
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
inline constexpr std::string_view kProductToSums = R"(
fn store_in_sums(half: u32, offset: u32, sum: u32, stride: u32) {
  for (var i = 0u; i < min(8u, params.k + 8u); i++) {
    let e = lane_of_matrix + i * 32u;
    tile_sums[half][offset + e / 16u * stride + e % 16u] = sums[sum * 8u + i];
  }
}
)";
// The same for attention, where an operand on the left outlives its tile: an invocation keeps the
// eight rows that it multiplies.
inline constexpr std::string_view kAttentionEmulation = R"(
alias left_matrix = array<vec4<u32>, 16>;
alias right_matrix = u32;
alias sum_matrix = array<f32, 8>;
var<private> lane_of_matrix: u32;

// Not unrolled: quicker to compile.
fn bound(n: u32) -> u32 { return min(n, n * params.quads); }
fn load_q(offset: u32) -> left_matrix {
  var rows: left_matrix;
  for (var i = 0u; i < bound(16u); i++) {
    rows[i] = tile_kv[offset + (lane_of_matrix / 16u + i / 2u * 2u) * wide_kv + i % 2u];
  }
  return rows;
}
fn load_weights(offset: u32) -> left_matrix {
  var rows: left_matrix;
  for (var i = 0u; i < bound(16u); i++) {
    rows[i] = tile_p[offset + (lane_of_matrix / 16u + i / 2u * 2u) * wide_p + i % 2u];
  }
  return rows;
}
fn load_k(offset: u32) -> right_matrix { return offset; }
fn load_v(offset: u32) -> right_matrix { return offset; }
fn half_of(v: vec4<u32>, i: u32) -> f32 {
  let pair_of = unpack2x16float(v[i / 2u]);
  return select(pair_of.x, pair_of.y, i % 2u == 1u);
}
fn score_add(left: left_matrix, right: right_matrix, sum: sum_matrix) -> sum_matrix {
  var rows = left;
  var total = sum;
  for (var e = 0u; e < bound(128u); e++) {
    let k = e % 16u;
    let b = half_of(tile_kv[right + lane_of_matrix % 16u * wide_kv + k / 8u], k % 8u);
    total[e / 16u] += half_of(rows[e / 16u * 2u + k / 8u], k % 8u) * b;
  }
  return total;
}
fn value_add(left: left_matrix, right: right_matrix, sum: sum_matrix) -> sum_matrix {
  var rows = left;
  var total = sum;
  let n = lane_of_matrix % 16u;
  for (var e = 0u; e < bound(128u); e++) {
    let k = e % 16u;
    let b = half_of(tile_kv[right + k * wide_kv + n / 8u], n % 8u);
    total[e / 16u] += half_of(rows[e / 16u * 2u + k / 8u], k % 8u) * b;
  }
  return total;
}
fn sum_at(offset: u32, i: u32) -> u32 {
  return offset + (lane_of_matrix / 16u + 2u * i) * wide_s + lane_of_matrix % 16u;
}
fn store_sum(offset: u32, sum: sum_matrix) {
  var total = sum;
  for (var i = 0u; i < bound(8u); i++) { tile_s[sum_at(offset, i)] = total[i]; }
}
fn load_sum(offset: u32) -> sum_matrix {
  var total: sum_matrix;
  for (var i = 0u; i < bound(8u); i++) { total[i] = tile_s[sum_at(offset, i)]; }
  return total;
}
)";

}  // namespace pteryx::ops::testing
