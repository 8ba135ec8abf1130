// y[b, oc, od, oh, ow] = finish(bias[oc] + sum over ic, kd, kh, kw of x * weight): any convolution that is not
// transposed. One invocation per four results of a row.
// Roofline: 2 flops per result and term. A 4-wide row costs KW + 3 reads of x and KW of weight per 4 KW products (3x3:
// 0.75 reads of 4 bytes a product), so it is bound by the first-level cache, not by memory or arithmetic: right
// where tiles would be mostly empty (few channels a group, few positions) and for 3-D.
// Host guarantees: items = batch * channels * depth * height * ceil(width / 4) of y.
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
  var rest = item / blocks;
  let oh = rest % params.out_size.y;
  rest /= params.out_size.y;
  let od = rest % params.out_size.x;
  rest /= params.out_size.x;
  let channels = params.groups * params.out_channels;
  let oc = rest % channels;
  let image = rest / channels;
  let first_x = (image * params.groups + oc / params.out_channels) * params.in_channels;
  let first_weight = oc * params.in_channels;
  let column = i32(ow * params.stride.z) - i32(params.padding.z);
  var sum = vec4<f32>();
  for (var ic = 0u; ic < params.in_channels; ic++) {
    for (var kd = 0u; kd < params.kernel.x; kd++) {
      let d = i32(od * params.stride.x + kd * params.dilation.x) - i32(params.padding.x);
      if (d < 0 || d >= i32(params.in_size.x)) { continue; }
      for (var kh = 0u; kh < params.kernel.y; kh++) {
        let h = i32(oh * params.stride.y + kh * params.dilation.y) - i32(params.padding.y);
        if (h < 0 || h >= i32(params.in_size.y)) { continue; }
        let row = (((first_x + ic) * params.in_size.x + u32(d)) * params.in_size.y + u32(h)) * params.in_size.z;
        let kernel_row = (((first_weight + ic) * params.kernel.x + kd) * params.kernel.y + kh) * params.kernel.z;
        sum = add_row(sum, row, kernel_row, column);
      }
    }
  }
  let at = (rest * params.out_size.x + od) * params.out_size.y + oh;
  put(at * params.out_size.z + ow, min(4u, params.out_size.z - ow), oc, sum);
}
