// Adds up the parts of a product whose k was cut, for a result that has `width` columns of it from `first_column` on.
// One invocation per word of y: y[m, c] = finish(sum over splits of parts[split, m, first_column + c]).
// Host guarantees: parts is [splits, m, n], m and n up to multiples of fill_m and fill_n; first_column + width <= n.
#option fill_m 1..128
#option fill_n 1..128
#option has_bias
#if has_bias
#option bias_type f16 | f32
#end
#option has_residual
#if has_residual
#option residual_type f16 | f32
#end
#tensor parts read f32
#let fixed = 0
#include "quant/kernels/common/params.wgsl"
#include "quant/kernels/common/finish.wgsl"
#tensor y words f16 | f32

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let w = flat_id(group, groups, local, 64u);
  let count = params.m * params.width;
  if (w * y_lanes >= count) { return; }
  let part_m = (params.m + $(fill_m - 1)u) / $(fill_m)u * $(fill_m)u;
  let part_n = (params.n + $(fill_n - 1)u) / $(fill_n)u * $(fill_n)u;
  var word = 0u;
  for (var lane = 0u; lane < y_lanes; lane++) {
    let i = w * y_lanes + lane;
    if (i >= count) { break; }
    let n = params.first_column + i % params.width;
    let m = i / params.width;
    var sum = 0.0;
    for (var s = 0u; s < params.splits; s++) { sum += load_parts((s * part_m + m) * part_n + n); }
    word |= encode_y(lane, finish(sum, m * params.n + n, n));
  }
  y[w] = word;
}
