// y[z, h, w, c] = x[z, c, h - padding, w - padding] in f16: the input of a convolution as conv_matrix reads it, channels
// next to each other and filled with 0 to wide_in of them, planes with the 0 of their padding around them. One invocation
// per sixteen channels of a position, which are a sector of memory; neighbours read along a row.
// Bytes: the size of x, and 2 per element of y.
// Host guarantees: depth 1; out_size is the size of a padded plane; wide_in is a multiple of 16;
// items = batch * groups * wide_in / 16 * out_size.
#enable f16
#option x_type f16 | f32
#tensor x raw $x_type
#tensor y raw_write vec4<u32>
#include "conv/common/conv.wgsl"
#include "conv/common/halves.wgsl"

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let item = flat_id(group, groups, local, 64u);
  if (item >= params.items) { return; }
  let plane = params.in_size.w;
  let position = item % params.out_size.w;
  let c = item / params.out_size.w % (params.wide_in / 16u) * 16u;
  let z = item / params.out_size.w / (params.wide_in / 16u);
  let h = position / params.out_size.z;
  let w = position % params.out_size.z;
  // Before the first wraps to far beyond the last.
  let from_h = h - params.padding.y;
  let from_w = w - params.padding.z;
#for i in 0..4
  var v$i = vec4<$x_type>();
#end
  if (from_h < params.in_size.y && from_w < params.in_size.z) {
    let at = (z * params.in_channels + c) * plane + from_h * params.in_size.z + from_w;
#for e in 0..16
    if (c + $(e)u < params.in_channels) { v$(e / 4)[$(e % 4)] = x[at + $(e)u * plane]; }
#end
  }
  let to = ((z * params.out_size.w + position) * params.wide_in + c) / 8u;
  y[to] = halves(v0, v1);
  y[to + 1u] = halves(v2, v3);
}
