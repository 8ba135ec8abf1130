// y[m, n] = silu(x[m, n]) * x[m, half + n]: what is behind a product that makes gates, then what they let through.
// One u32 word of y per invocation. Host guarantees: x is [m, 2 * half] in f32, count = m * half.
#tensor x read f32
#tensor y words f16 | f32
#include "common/index.wgsl"

struct Params { count: u32, half: u32 }
@group(0) @binding(0) var<uniform> params: Params;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let w = flat_id(group, groups, local, 64u);
  if (w * y_lanes >= params.count) { return; }
  var word = 0u;
  for (var lane = 0u; lane < y_lanes; lane++) {
    let i = w * y_lanes + lane;
    if (i >= params.count) { break; }
    let at = i / params.half * 2u * params.half + i % params.half;
    let gate = load_x(at);
    word |= encode_y(lane, gate / (1.0 + exp(-gate)) * load_x(at + params.half));
  }
  y[w] = word;
}
