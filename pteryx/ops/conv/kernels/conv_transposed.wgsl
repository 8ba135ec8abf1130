// y[b, oc, od, oh, ow] = finish(bias[oc] + sum over ic, kd, kh, kw of x[b, ic, d, h, w] * weight[ic, oc, kd, kh, kw])
// with d * stride = od + padding - kd * dilation, likewise h and w: each result gathers what reaches it.
// One invocation per four results of a row.
// Roofline: flops = 2 * terms / (stride_h * stride_w) per result; each product reads x once from the cache and each
// weight serves up to four results, so it is bound by cache reads.
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

// The input that result `o` takes through kernel entry `k` along one axis; -1: none.
fn source(o: u32, k: u32, size: u32, stride: u32, padding: u32, dilation: u32) -> i32 {
  let at = o + padding;
  let back = k * dilation;
  if (at < back || (at - back) % stride != 0u) { return -1; }
  let i = (at - back) / stride;
  return select(-1, i32(i), i < size);
}

fn source_x(ow: u32, k: u32) -> i32 {
  return source(ow, k, params.in_size.z, params.stride.z, params.padding.z, params.dilation.z);
}

fn x_at(row: u32, column: i32) -> f32 {
  if (column < 0) { return 0.0; }
  return load_x(row + u32(column));
}

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
  let g = oc / params.out_channels;
  let first_x = (image * params.groups + g) * params.in_channels;
  let first_weight = g * params.in_channels * params.out_channels + oc % params.out_channels;
  let taps = params.kernel.w;
  var sum = vec4<f32>();
  for (var kd = 0u; kd < params.kernel.x; kd++) {
    let d = source(od, kd, params.in_size.x, params.stride.x, params.padding.x, params.dilation.x);
    if (d < 0) { continue; }
    for (var kh = 0u; kh < params.kernel.y; kh++) {
      let h = source(oh, kh, params.in_size.y, params.stride.y, params.padding.y, params.dilation.y);
      if (h < 0) { continue; }
      for (var kw = 0u; kw < params.kernel.z; kw++) {
        let w = vec4<i32>(source_x(ow, kw), source_x(ow + 1u, kw), source_x(ow + 2u, kw), source_x(ow + 3u, kw));
        if (all(w < vec4<i32>(0))) { continue; }
        var row = (first_x * params.in_size.x * params.in_size.y + u32(d) * params.in_size.y + u32(h)) *
            params.in_size.z;
        var kernel = first_weight * taps + (kd * params.kernel.y + kh) * params.kernel.z + kw;
        for (var ic = 0u; ic < params.in_channels; ic++) {
          sum += load_weight(kernel) *
              vec4<f32>(x_at(row, w.x), x_at(row, w.y), x_at(row, w.z), x_at(row, w.w));
          row += params.in_size.w;
          kernel += params.out_channels * taps;
        }
      }
    }
  }
  let at = (rest * params.out_size.x + od) * params.out_size.y + oh;
  put(at * params.out_size.z + ow, min(4u, params.out_size.z - ow), oc, sum);
}
