// y[batch, m, n] = epilogue(sum over k of a[batch, m, k] * b[batch, k, n]).
// A few rows of a against a b that is contiguous along n. A workgroup makes `rows` x 32 results: 8 invocations side by
// side take 4 columns each, 32 of them share out k.
// Bytes: n * k of b once, 128 in a row. 2 * rows operations per element of b: bound by memory up to 8 rows.
// Host guarantees: m <= rows <= 8.
#option rows 1..8
#option a_type f16 | f32
#option b_type f16 | f32
#option y_type f16 | f32
#option a_fours
#option b_load elements | fours
#option has_add
#if has_add
#option add_type f16 | f32
#end
#option activation none | relu | silu | gelu | gelu_tanh
#option has_scale
#if has_scale
#option scale_type f16 | f32
#end
#option has_residual
#if has_residual
#option residual_type f16 | f32
#end
#option row_words
#let along_k = 0
#let finished = 1
#let team = 32
#let wg_size = 256
#let block = 0
#include "matmul/common/matmul.wgsl"
#include "matmul/common/a.wgsl"
#include "matmul/common/b.wgsl"
#include "matmul/common/put.wgsl"

const rows: u32 = $(rows)u;

// One value for each of four columns.
alias acc = vec4<f32>;
fn combine(a: acc, b: acc) -> acc { return a + b; }
#include "common/fold.wgsl"

const across: u32 = wg_size / team;
const deep: u32 = team;

@compute @workgroup_size(wg_size)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let tiles = (params.n + across * 4u - 1u) / (across * 4u);
  let unit = flat_group(group, groups);
  let batch = unit / tiles;
  let n = (unit % tiles * across + local % across) * 4u;
  let depth = local / across;
  var sums: array<acc, rows>;
  for (var m = 0u; m < rows; m++) { sums[m] = acc(0.0); }
  if (batch < params.batches) {
    let a_base = batch * params.a_batch;
    let b_base = batch * params.b_batch;
    for (var k = depth * 4u; k < params.k; k += deep * 4u) {
      let b0 = b4(b_base, k, n);
      let b1 = b4(b_base, k + 1u, n);
      let b2 = b4(b_base, k + 2u, n);
      let b3 = b4(b_base, k + 3u, n);
      for (var m = 0u; m < rows; m++) {
        let v = a4(a_base, m, k);
        sums[m] += v.x * b0 + v.y * b1 + v.z * b2 + v.w * b3;
      }
    }
  }
  // The invocations of one column are not neighbours; for the fold they are numbered as if they were.
  for (var m = 0u; m < rows; m++) {
    let total = fold(sums[m], local % across * deep + depth);
    if (depth == m && batch < params.batches) {
      put2(batch, m, n, total.xy);
      put2(batch, m, n + 2u, total.zw);
    }
  }
}
