// y[n, c, i] = (x - mean[c]) * rsqrt(variance[c] + eps) * weight[c] + bias[c]. One u32 word of y per invocation.
// Host guarantees: x and y are n elements, [.., channels, inner]; mean, variance, weight and bias have `channels` each.
#option has_weight
#option has_bias
#tensor x read f16 | f32
#tensor mean read f16 | f32
#tensor variance read f16 | f32
#if has_weight
#tensor weight read f16 | f32
#end
#if has_bias
#tensor bias read f16 | f32
#end
#tensor y words f16 | f32
#include "common/index.wgsl"

struct Params { n: u32, channels: u32, inner: u32, eps: f32 }
@group(0) @binding(0) var<uniform> params: Params;

#include "common/affine.wgsl"

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let w = flat_id(group, groups, local, 64u);
  if (w * y_lanes >= params.n) { return; }
  var word = 0u;
  for (var j = 0u; j < y_lanes; j++) {
    let i = w * y_lanes + j;
    if (i >= params.n) { break; }
    let c = i / params.inner % params.channels;
    word |= encode_y(j, affine((load_x(i) - load_mean(c)) * inverseSqrt(load_variance(c) + params.eps), c));
  }
  y[w] = word;
}
