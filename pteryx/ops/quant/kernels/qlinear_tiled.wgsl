// y[m, n] = finish(sum over k of x[m, k] * (code[n, k] * scale[n, k] + minimum[n, k])).
// A workgroup of 16 x 16 invocations makes a tile of y, `thread` x `thread` results each, from a tile of x and one of
// weights in workgroup memory; weights are turned into numbers on their way there, and the next tiles are fetched while
// these are multiplied.
// thread 4: tile 64 x 64, 32 of k at a time. thread 8: tile 128 x 128, 16 of k at a time. Both 16 KiB, both 2 fours of
// x and 8 codes of weights per invocation and step.
// k may be cut into `splits` parts of `chunk` (a multiple of 32), whose sums a merge adds up.
// Host guarantees: a workgroup of 256 invocations and its 16 KiB fit the device.
#option thread 4..8
#require thread % 4 == 0
#option x_type f16 | f32 | i8
#option x_fours
#option codes nibbles | bytes
#option scale_order flat | groups | blocks
#option scale_for unit | four | code
#option scales_type f16 | f32
#option has_minimums
#if has_minimums
#option minimums_type f16 | f32
#end
#option results 1..4
#option parts
#option row_words
#option has_bias
#if has_bias
#option bias_type f16 | f32
#end
#option has_residual
#if has_residual
#option residual_type f16 | f32
#end
#option y_type f16 | f32
#require results == 1 || row_words
#let fixed = 0
#include "quant/kernels/common/params.wgsl"
#include "quant/kernels/common/x.wgsl"
#include "quant/kernels/common/weights.wgsl"
#include "quant/kernels/common/results.wgsl"

// Scaled weights at (n, k .. k+7), k a multiple of 8; 0 outside.
fn w4(n: u32, k: u32) -> vec4<f32> {
  return (quad(fetch(n, k / unit), k % unit / 4u, n, k / unit * unit) - code_offset) * unit_scale(n, k) +
      unit_minimum(n, k);
}
fn w8(n: u32, k: u32) -> array<vec4<f32>, 2> {
  var w = array<vec4<f32>, 2>(vec4<f32>(0.0), vec4<f32>(0.0));
  if (n < params.n && k < params.k) { w[0] = w4(n, k); }
  if (n < params.n && k + 4u < params.k) { w[1] = w4(n, k + 4u); }
  return w;
}

const thread: u32 = $(thread)u;

const tile: u32 = thread * 16u;
const quads: u32 = 32u / thread;  // fours of k in a tile: 8 or 4
const depth: u32 = quads * 4u;
const halves: u32 = thread / 4u;

var<workgroup> tile_x: array<vec4<f32>, tile * quads>;
var<workgroup> tile_w: array<vec4<f32>, tile * quads>;

// Rows are shuffled so that neighbours read different banks.
fn slot(row: u32, q: u32) -> u32 { return row * quads + (q ^ ((row >> (halves - 1u)) & (quads - 1u))); }
// Where a column is kept: an invocation owns pairs of neighbours, its neighbour the next pair.
fn column_slot(n: u32) -> u32 { return (n & ~31u) | ((n & 1u) << 4u) | ((n & 31u) >> 1u); }

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let tiles_m = (params.m + tile - 1u) / tile;
  let tiles_n = (params.n + tile - 1u) / tile;
  let at = flat_group(group, groups);
  let part = at / tiles_m / tiles_n;
  if (part >= params.splits) { return; }
  let first_m = at % tiles_m * tile;
  let first_n = at / tiles_m % tiles_n * tile;
  let start_k = part * params.chunk;
  let end_k = min(start_k + params.chunk, params.k);
  let column = local % 16u;
  let row = local / 16u * thread;
  let w_row = local / (quads / 2u);
  let w_quad = local % (quads / 2u) * 2u;

  var sums: array<vec4<f32>, thread * halves>;
  for (var i = 0u; i < thread * halves; i++) { sums[i] = vec4<f32>(0.0); }
  var next_x: array<vec4<f32>, 2>;
  var next_w: array<vec4<f32>, 2>;
  for (var k = start_k; k < end_k + depth; k += depth) {
    if (k < end_k) {
      for (var i = 0u; i < 2u; i++) {
        let e = local + i * 256u;
        next_x[i] = x4(first_m + e / quads, k + e % quads * 4u);
      }
      next_w = w8(first_n + w_row, k + w_quad * 4u);
    }
    if (k > start_k) {
      for (var q = 0u; q < quads; q++) {
        var v: array<vec4<f32>, thread>;
        for (var i = 0u; i < thread; i++) { v[i] = tile_x[slot(row + i, q)]; }
        for (var h = 0u; h < halves; h++) {
          let w0 = tile_w[slot(h * 64u + column, q)];
          let w1 = tile_w[slot(h * 64u + 16u + column, q)];
          let w2 = tile_w[slot(h * 64u + 32u + column, q)];
          let w3 = tile_w[slot(h * 64u + 48u + column, q)];
          for (var i = 0u; i < thread; i++) {
            sums[i * halves + h] += vec4<f32>(dot(v[i], w0), dot(v[i], w1), dot(v[i], w2), dot(v[i], w3));
          }
        }
      }
    }
    workgroupBarrier();
    for (var i = 0u; i < 2u; i++) {
      let e = local + i * 256u;
      tile_x[slot(e / quads, e % quads)] = next_x[i];
      tile_w[slot(column_slot(w_row), w_quad + i)] = next_w[i];
    }
    workgroupBarrier();
  }

  for (var i = 0u; i < thread; i++) {
    let m = first_m + row + i;
    for (var h = 0u; h < halves; h++) {
      let total = sums[i * halves + h];
      let n = first_n + h * 64u + column * 2u;
      put2(part, m, n, total.xy);
      put2(part, m, n + 32u, total.zw);
    }
  }
}
