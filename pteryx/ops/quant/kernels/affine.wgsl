// Numbers to codes, y = clamp(round(x / scale) + zero, qmin, qmax), or codes to numbers, y = (x - zero) * scale, with a
// scale and a zero for each block of x. One u32 word of y per invocation.
// Host guarantees: dims are those of x and y, right-aligned, first = 8 - rank; block sizes divide them, and strides are
// those of the blocks.
#option to_codes
#option has_scales  // a tensor of them, else one number
#option has_zeros
#tensor x read f16 | f32 | bool | u8 | i8 | i32
#if has_scales
#tensor scales read f16 | f32
#end
#if has_zeros
#tensor zeros read f16 | f32 | u8 | i8 | i32
#end
#tensor y words f16 | f32 | bool | u8 | i8 | i32
#include "common/index.wgsl"

struct Params {
  dims: array<vec4<u32>, 2>, blocks: array<vec4<u32>, 2>, strides: array<vec4<u32>, 2>,
  n: u32, first: u32, scale: f32, zero: f32, qmin: f32, qmax: f32
}
@group(0) @binding(0) var<uniform> params: Params;

fn scale(at: u32) -> f32 {
#if has_scales
  return load_scales(at);
#else
  return params.scale;
#end
}

fn zero(at: u32) -> f32 {
#if has_zeros
  return f32(load_zeros(at));
#else
  return params.zero;
#end
}

fn convert(x: x_t, scale: f32, zero: f32) -> y_t {
#if to_codes
  return y_t(clamp(round(f32(x) * (1.0 / scale)) + zero, params.qmin, params.qmax));
#else
  return y_t((f32(x) - zero) * scale);
#end
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let w = flat_id(group, groups, local, 64u);
  if (w * y_lanes >= params.n) { return; }
  var word = 0u;
  for (var lane = 0u; lane < y_lanes; lane++) {
    let i = w * y_lanes + lane;
    if (i >= params.n) { break; }
    var rest = i;
    var at = 0u;
    for (var d = 8u; d > params.first; d--) {
      let size = params.dims[(d - 1u) >> 2u][(d - 1u) & 3u];
      at += rest % size / params.blocks[(d - 1u) >> 2u][(d - 1u) & 3u] * params.strides[(d - 1u) >> 2u][(d - 1u) & 3u];
      rest /= size;
    }
    word |= encode_y(lane, convert(load_x(i), scale(at), zero(at)));
  }
  y[w] = word;
}
