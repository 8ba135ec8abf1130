// y[batch, m, n] = epilogue(sum over k of a[batch, m, k] * b[batch, k, n]).
// A few rows of a against columns of b that are contiguous along k. A team of invocations makes `rows` x 4 results and
// shares out k; b is read once, 16 bytes per invocation and neighbours side by side.
// Bytes: n * k of b once, a from the cache. 2 * rows operations per element of b: bound by memory up to 8 rows.
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
#option team 1..1024
#option wg_size 1..1024
#option block 0..1024
#let along_k = 1
#let finished = 1
#include "matmul/common/matmul.wgsl"
#include "matmul/common/a.wgsl"
#include "matmul/common/b.wgsl"
#include "matmul/common/put.wgsl"

const rows: u32 = $(rows)u;

// One value for each of four columns.
alias acc = vec4<f32>;
fn combine(a: acc, b: acc) -> acc { return a + b; }
#include "common/fold.wgsl"

@compute @workgroup_size(wg_size)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let unit = flat_group(group, groups) * (wg_size / team) + local / team;
  let lane = local & (team - 1u);
  let quads = (params.n + 3u) / 4u;
  let batch = unit / quads;
  let n = unit % quads * 4u;
  var sums: array<acc, rows>;
  for (var m = 0u; m < rows; m++) { sums[m] = acc(0.0); }
  if (batch < params.batches) {
    let a_base = batch * params.a_batch;
    let b_base = batch * params.b_batch;
    for (var k = lane * 4u; k < params.k; k += team * 4u) {
      let b0 = b4(b_base, n, k);
      let b1 = b4(b_base, n + 1u, k);
      let b2 = b4(b_base, n + 2u, k);
      let b3 = b4(b_base, n + 3u, k);
      for (var m = 0u; m < rows; m++) {
        let v = a4(a_base, m, k);
        sums[m] += acc(dot(v, b0), dot(v, b1), dot(v, b2), dot(v, b3));
      }
    }
  }
  for (var m = 0u; m < rows; m++) {
    let total = fold(sums[m], local);
    if (lane == m && batch < params.batches) {
      put2(batch, m, n, total.xy);
      put2(batch, m, n + 2u, total.zw);
    }
  }
}
