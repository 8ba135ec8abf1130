// y[i] = x[i], x broadcast and converted. One u32 word of y per invocation.
// Host guarantees: dims are those of y, merged and right-aligned, first = 8 - rank; a stride of 0 repeats; first = 8 where
// x has the elements of y in the same order.
#option raw  // x and y have one element type
#if raw
#tensor x raw u32
#else
#tensor x read
#end
#tensor y words
#include "common/index.wgsl"
#include "common/lanes.wgsl"

struct Params { dims: array<vec4<u32>, 2>, strides: array<vec4<u32>, 2>, n: u32, first: u32 }
@group(0) @binding(0) var<uniform> params: Params;

// Truncation toward zero that saturates at 32 bits; 0 for NaN.
fn whole(v: f32) -> i32 {
  if ((bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u) { return 0; }
  return select(i32(clamp(v, -2147483648.0, 2147483520.0)), 2147483647, v >= 2147483648.0);
}

// Element `at` of x as bits of y's word: as they are; to bool by comparison with zero (in bits, so that NaN and the
// smallest numbers count); integers wrap.
fn part(lane: u32, at: u32) -> u32 {
#if raw
  return moved(x[at / y_lanes], at, lane);
#elif y_type == bool && (x_type == f16 || x_type == f32)
  return encode_y(lane, select(0, 1, (bitcast<u32>(load_x(at)) & 0x7fffffffu) != 0u));
#elif (x_type == f16 || x_type == f32) && y_type != f16 && y_type != f32
  return encode_y(lane, whole(load_x(at)));
#else
  return encode_y(lane, y_t(load_x(at)));
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
      let q = (d - 1u) >> 2u;
      let r = (d - 1u) & 3u;
      at += (rest % params.dims[q][r]) * params.strides[q][r];
      rest /= params.dims[q][r];
    }
    word |= part(lane, at + rest);
  }
  y[w] = word;
}
