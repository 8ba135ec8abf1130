// y[b, c, oh, ow] = finish(sum over kh, kw of x[b, c / multiplier] * weight[c]): one input channel a group. One invocation
// per `rows` results below each other and `side` beside each other (f16 results are written in pairs), so that a row of x
// is read once for all of them; neighbours share columns through the cache. The kernel's size is written out.
// Roofline: bytes = x + y once, flops = 2 KH KW per result (3x3 f32: 18 flops per 8 bytes), so memory bound; an
// invocation reads ((rows - 1) * stride_h + KH) * KW of x from the cache for `rows` results (3x3, 4 rows: 4.5 each).
// Host guarantees: in_channels = 1, depth 1, dilation 1 along columns, items = batch * channels * ceil(height / rows) *
// (width / side). Two beside each other: dilation 1 along rows, an even width.
#option kernel_h 1..7
#option kernel_w 1..7
#option stride_h 1..2
#option rows 1..8
#option side 1..2
#if side == 2
#option stride_w 1..2
#else
#let stride_w = 1
#end
#option has_bias
#option activation none | silu | hardswish
#option has_norm
#option has_residual 0..2
#option has_lo
#option has_hi
#option y_rows pairs | ones
#require side == 1 || y_rows == pairs
#require side == 2 || y_rows == ones
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
#option y_type f16 | f32
#include "conv/common/conv.wgsl"
#include "conv/common/results.wgsl"

fn x_at(row: u32, column: i32) -> f32 {
  if (column < 0 || column >= i32(params.in_size.z)) { return 0.0; }
  return load_x(row + u32(column));
}

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let item = flat_id(group, groups, local, 128u);
  if (item >= params.items) { return; }
  let blocks = (params.out_size.y + $(rows - 1)u) / $(rows)u;
  let across = params.out_size.z / $(side)u;
  let ow = item % across * $(side)u;
  let oh = item / across % blocks * $(rows)u;
  let plane = item / across / blocks;
  let c = plane % (params.groups * params.out_channels);
  let h0 = i32(oh * $(stride_h)u) - i32(params.padding.y);
  let w0 = i32(ow * params.stride.z) - i32(params.padding.z);
  let first = plane / params.out_channels * params.in_size.y;
  let dilation = i32(params.dilation.z);
#for i in 0..kernel_h * kernel_w
  let weight$i = load_weight(c * $(kernel_h * kernel_w)u + $(i)u);
#end
#for r in 0..rows
#for s in 0..side
  var sum$(r)_$s = 0.0;
#end
#end
#for h in 0..(rows - 1) * stride_h + kernel_h
  if (h0 + $h >= 0 && h0 + $h < i32(params.in_size.y)) {
    let row = (first + u32(h0 + $h)) * params.in_size.z;
#for w in 0..(side - 1) * stride_w + kernel_w
    let x$w = x_at(row, w0 + $w * dilation);
#end
#for r in 0..rows
#if h >= r * stride_h && h < r * stride_h + kernel_h
#for w in 0..kernel_w
#for s in 0..side
    sum$(r)_$s += weight$((h - r * stride_h) * kernel_w + w) * x$(s * stride_w + w);
#end
#end
#end
#end
  }
#end
  let at = (plane * params.out_size.y + oh) * params.out_size.z + ow;
#for r in 0..rows
  if (oh + $(r)u < params.out_size.y) {
    put(at + $(r)u * params.out_size.z, $(side)u, c, vec4<f32>(sum$(r)_0, sum$(r)_$(side - 1), 0.0, 0.0));
  }
#end
}
