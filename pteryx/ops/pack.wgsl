// y[i] = x[i], one u32 word of y per invocation: packs full words into the element type of y.
// Host guarantees: x and y have n elements each, those of x a word each.
#tensor x read i32 | f32
#tensor y words
#include "common/index.wgsl"

struct Params { n: u32 }
@group(0) @binding(0) var<uniform> params: Params;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let w = flat_id(group, groups, local, 64u);
  if (w * y_lanes >= params.n) { return; }
  var word = 0u;
  for (var lane = 0u; lane < y_lanes; lane++) {
    let i = w * y_lanes + lane;
    if (i < params.n) { word |= encode_y(lane, y_t(load_x(i))); }
  }
  y[w] = word;
}
