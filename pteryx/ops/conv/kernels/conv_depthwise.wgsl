// y[b, c, oh, ow] = finish(bias[c] + sum over kh, kw of x[b, c / multiplier] * weight[c]): one input channel a group.
// One invocation per four results of a row; neighbours of a workgroup share their input rows through the cache.
// Roofline: bytes = x + y once, flops = 2 KH KW per result (3x3 f32: 18 flops per 8 bytes), so memory bound; the row
// block keeps the cache reads at (KW + 3) / (4 KW) of x and 1 / 4 of weight per product.
// Host guarantees: in_channels = 1, depth 1, items = batch * channels * height * ceil(width / 4) of y.
#option has_bias
#option activation none | silu | hardswish
#option has_norm
#option has_residual 0..2
#option has_lo
#option has_hi
#option y_rows fours | pairs | ones
#option y_type f16 | f32
#tensor x read f16 | f32
#tensor weight read f16 | f32
#if has_bias
#tensor bias read f16 | f32
#end
#if has_norm
#tensor norm read f16 | f32
#end
#if has_residual
#tensor residual read f16 | f32
#end
#include "conv/common/conv.wgsl"
#include "conv/common/results.wgsl"
#include "conv/common/row.wgsl"

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let item = flat_id(group, groups, local, 64u);
  if (item >= params.items) { return; }
  let blocks = (params.out_size.z + 3u) / 4u;
  let ow = item % blocks * 4u;
  let line = item / blocks;
  let oh = line % params.out_size.y;
  let plane = line / params.out_size.y;
  let c = plane % (params.groups * params.out_channels);
  let h = i32(oh * params.stride.y) - i32(params.padding.y);
  let column = i32(ow * params.stride.z) - i32(params.padding.z);
  var sum = vec4<f32>();
  for (var kh = 0u; kh < params.kernel.y; kh++) {
    let at = h + i32(kh * params.dilation.y);
    if (at < 0 || at >= i32(params.in_size.y)) { continue; }
    let row = (plane / params.out_channels * params.in_size.y + u32(at)) * params.in_size.z;
    sum = add_row(sum, row, (c * params.kernel.y + kh) * params.kernel.z, column);
  }
  put(line * params.out_size.z + ow, min(4u, params.out_size.z - ow), c, sum);
}
