// y[m, n] = finish(sum over k of x[m, k] * (code[n, k] * scale[n, k] + minimum[n, k])).
// A few rows of x. A team of invocations makes `rows` x 4 results and shares out k: each reads one fetch of four rows of
// weights (16 bytes where rows allow it), so that neighbours read side by side, and unpacks it once for all rows of x.
// Bytes: the weights once, x from the cache. Bound by memory while rows are few.
// Host guarantees: m <= rows.
#option rows 1..8
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
#option team 1..1024
#option wg_size 1..1024
#option block 0..1024
#let fixed = 0
#include "quant/kernels/common/params.wgsl"
#include "quant/kernels/common/x.wgsl"
#include "quant/kernels/common/weights.wgsl"
#include "quant/kernels/common/results.wgsl"

const rows: u32 = $(rows)u;

// One value for each of four columns.
alias acc = vec4<f32>;
fn combine(a: acc, b: acc) -> acc { return a + b; }
#include "common/fold.wgsl"

@compute @workgroup_size(wg_size)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let n = (flat_group(group, groups) * (wg_size / team) + local / team) * 4u;
  let lane = local & (team - 1u);
  var sums: array<acc, rows>;
  for (var m = 0u; m < rows; m++) { sums[m] = acc(0.0); }
  if (n < params.n) {
    let last = params.n - 1u;  // columns past the end repeat it and are not stored
    let n1 = min(n + 1u, last);
    let n2 = min(n + 2u, last);
    let n3 = min(n + 3u, last);
    let units = (params.k + unit - 1u) / unit;
    for (var u = lane; u < units; u += team) {
      let k = u * unit;
      let w0 = fetch(n, u);
      let w1 = fetch(n1, u);
      let w2 = fetch(n2, u);
      let w3 = fetch(n3, u);
      let s = acc(unit_scale(n, k), unit_scale(n1, k), unit_scale(n2, k), unit_scale(n3, k));
#if has_minimums && scale_for == unit
      let z = acc(unit_minimum(n, k), unit_minimum(n1, k), unit_minimum(n2, k), unit_minimum(n3, k));
#end
      var parts: array<acc, rows>;
      for (var m = 0u; m < rows; m++) { parts[m] = acc(0.0); }
      for (var j = 0u; j < unit / 4u; j++) {
        let q0 = quad(w0, j, n, k);
        let q1 = quad(w1, j, n1, k);
        let q2 = quad(w2, j, n2, k);
        let q3 = quad(w3, j, n3, k);
        for (var m = 0u; m < rows; m++) {
          let v = x4(m, k + j * 4u);
          let x_sum = dot(v, vec4<f32>(1.0));
          parts[m] += acc(dot(v, q0), dot(v, q1), dot(v, q2), dot(v, q3)) - code_offset * x_sum;
#if has_minimums && scale_for == unit
          sums[m] += z * x_sum;
#end
        }
      }
      for (var m = 0u; m < rows; m++) { sums[m] += s * parts[m]; }
    }
  }
  for (var m = 0u; m < rows; m++) {
    let total = fold(sums[m], local);
    if (lane == m) {
      put2(0u, m, n, total.xy);
      put2(0u, m, n + 2u, total.zw);
    }
  }
}
