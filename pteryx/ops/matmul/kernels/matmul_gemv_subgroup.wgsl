// A few rows of a against columns of b that are contiguous along k. A team of invocations makes `rows` x 4 results and
// shares out k by eights; b is read once, 16 or 32 bytes of a column per invocation and neighbours side by side, and the
// sums of all rows are folded together.
// Bytes: n * k of b once, a from the cache. 2 * rows operations per element of b: bound by memory up to 8 rows.
// Host guarantees: m = rows <= 8, b contiguous along k.
#option rows 1..8
#option a_type f16 | f32
#option b_type f16 | f32
#option y_type f16 | f32
#option a_fours
#option b_load elements | fours | eights
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
#option block 4..128
#require b_load != eights || b_type == f16
#let along_k = 1
#let finished = 1
#let vectors = rows
#include "matmul/common/matmul.wgsl"
#include "matmul/common/a.wgsl"
#include "matmul/common/b.wgsl"
#include "matmul/common/put.wgsl"
#include "common/fold_many.wgsl"

const rows: u32 = $(rows)u;

// b at (k .. k+7, n); any numbers past the last column
fn b8(base: u32, n: u32, k: u32) -> array<vec4<f32>, 2> {
#if b_load == eights
  let w = b_eight(base, min(n, params.n - 1u), k);
  return array<vec4<f32>, 2>(vec4<f32>(unpack2x16float(w.x), unpack2x16float(w.y)),
                             vec4<f32>(unpack2x16float(w.z), unpack2x16float(w.w)));
#else
  return array<vec4<f32>, 2>(b4(base, n, k), b4(base, n, k + 4u));
#end
}

@compute @workgroup_size(wg_size)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let first_unit = flat_group(group, groups) * (wg_size / team);
  let unit = first_unit + local / team;
  let lane = local % team;
  let quads = (params.n + 3u) / 4u;
  let batch = unit / quads;
  let n = unit % quads * 4u;
  var sums: array<vec4<f32>, rows>;
  for (var m = 0u; m < rows; m++) { sums[m] = vec4<f32>(0.0); }
  if (batch < params.batches) {
    let a_base = batch * params.a_batch;
    let b_base = batch * params.b_batch;
    for (var k = lane * 8u; k < params.k; k += team * 8u) {
      let b0 = b8(b_base, n, k);
      let b1 = b8(b_base, n + 1u, k);
      let b2 = b8(b_base, n + 2u, k);
      let b3 = b8(b_base, n + 3u, k);
      for (var m = 0u; m < rows; m++) {
        let low = a4(a_base, m, k);
        let high = a4(a_base, m, k + 4u);
        sums[m] += vec4<f32>(dot(low, b0[0]), dot(low, b1[0]), dot(low, b2[0]), dot(low, b3[0])) +
            vec4<f32>(dot(high, b0[1]), dot(high, b1[1]), dot(high, b2[1]), dot(high, b3[1]));
      }
    }
  }
  for (var m = 0u; m < rows; m++) { fold_four(m, sums[m], local); }
  workgroupBarrier();
  for (var i = local; i < wg_size / team * rows * 2u; i += wg_size) {
    let which = i / (rows * 2u);
    let m = i / 2u % rows;
    let c = i % 2u * 2u;
    let at = first_unit + which;
    if (at / quads < params.batches) {
      put2(at / quads, m, at % quads * 4u + c, folded(which, m, c));
    }
  }
}
