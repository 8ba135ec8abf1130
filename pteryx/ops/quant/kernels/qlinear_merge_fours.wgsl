// Adds up the parts of a product whose k was cut, for all results at once: y[m, n] = finish(sum over splits of
// parts[split, m, n]). One invocation per four columns; all parts are asked for before the first is added.
// Host guarantees: parts is [splits, m, n], m and n up to multiples of fill_m and fill_n; every result has whole fours.
#option splits 1..16
#option fill_m 1..128
#option fill_n 1..128
#option results 1..4
#option has_bias
#if has_bias
#option bias_type f16 | f32
#end
#option has_residual
#if has_residual
#option residual_type f16 | f32
#end
#option y_type f16 | f32
#let store = fours
#tensor parts raw vec4<f32>
#let fixed = 0
#include "quant/kernels/common/params.wgsl"
#include "quant/kernels/common/results4.wgsl"

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = flat_id(group, groups, local, 64u);
  let m = i / (params.n / 4u);
  let n = i % (params.n / 4u) * 4u;
  if (m >= params.m) { return; }
  let part_m = (params.m + $(fill_m - 1)u) / $(fill_m)u * $(fill_m)u;
  let part_n = (params.n + $(fill_n - 1)u) / $(fill_n)u * $(fill_n)u;
  let at = (m * part_n + n) / 4u;
#for s in 0..splits
  let part$s = parts[at + $(s)u * (part_m * part_n / 4u)];
#end
  var sum = part0;
#for s in 1..splits
  sum += part$s;
#end
  put4(0u, m, n, sum);
}
