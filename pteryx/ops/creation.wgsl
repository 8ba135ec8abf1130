// y[i] = a value made from i alone. One u32 word of y per invocation.
// Host guarantees: y has n elements; width > 0 for the identity.
#option content fill | count | identity
#tensor y words
#include "common/index.wgsl"
#include "common/lanes.wgsl"

struct Params { n: u32, bits: u32, width: u32, start: f32, step: f32, start_int: i32, step_int: i32 }
@group(0) @binding(0) var<uniform> params: Params;

// The bits of an element in their lane.
fn part(lane: u32, i: u32) -> u32 {
#if content == fill
  return params.bits << (lane * lane_bits);
#elif content == identity
  return encode_y(lane, select(y_t(0), y_t(1), i / params.width == i % params.width));
#elif y_type == f16 || y_type == f32
  return encode_y(lane, fma(f32(i), params.step, params.start));
#else
  return encode_y(lane, params.start_int + i32(i) * params.step_int);
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
    if (i < params.n) { word |= part(lane, i); }
  }
  y[w] = word;
}
