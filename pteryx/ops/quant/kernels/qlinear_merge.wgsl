// Adds up the parts of a product whose k was cut, for a result that has `width` columns of it from `first_column` on.
// One invocation per word of y: y[m, c] = finish(sum over splits of parts[split, m, first_column + c]).
// Host guarantees: parts is [splits, m, n] in f32; first_column + width <= n.
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
  var word = 0u;
  for (var lane = 0u; lane < y_lanes; lane++) {
    let i = w * y_lanes + lane;
    if (i >= count) { break; }
    let n = params.first_column + i % params.width;
    let at = i / params.width * params.n + n;
    var sum = 0.0;
    for (var s = 0u; s < params.splits; s++) { sum += load_parts(s * params.m * params.n + at); }
    word |= encode_y(lane, finish(sum, at, n));
  }
  y[w] = word;
}
