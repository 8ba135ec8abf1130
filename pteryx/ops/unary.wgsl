// y[i] = apply(x[i]). `per_invocation` u32 words of y per invocation, a workgroup apart, so that loads overlap.
// Host guarantees: x and y have n elements each.
#option compute f32 | i32
#option apply text  // over x
#tensor x read
#tensor y words
#include "common/index.wgsl"
#include "common/math.wgsl"

struct Params { n: u32, a: f32, b: f32, c: f32, a_int: i32, b_int: i32 }
@group(0) @binding(0) var<uniform> params: Params;

alias ct = $compute;
fn apply(x: ct) -> ct { return $apply; }

@compute @workgroup_size(wide_group)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let first = flat_group(group, groups) * wide_group * per_invocation + local;
  for (var k = 0u; k < per_invocation; k++) {
    let w = first + k * wide_group;
    if (w * y_lanes >= params.n) { return; }
    var word = 0u;
    for (var lane = 0u; lane < y_lanes; lane++) {
      let i = w * y_lanes + lane;
      if (i < params.n) { word |= encode_y(lane, y_t(apply(ct(load_x(i))))); }
    }
    y[w] = word;
  }
}
