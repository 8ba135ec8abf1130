// y[h * width + w] = ((w + offset) * stride, (h + offset) * stride): the places of a detector's cells. One u32 word of y
// per invocation. Bytes: y once; nothing is read.
// Host guarantees: y is [height * width, 2], n elements in all, width > 0.
#tensor y words f16 | f32
#include "common/index.wgsl"

struct Params { width: u32, n: u32, stride: f32, offset: f32 }
@group(0) @binding(0) var<uniform> params: Params;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word_at = flat_id(group, groups, local, 64u);
  if (word_at * y_lanes >= params.n) { return; }
  var word = 0u;
  for (var lane = 0u; lane < y_lanes; lane++) {
    let i = word_at * y_lanes + lane;
    if (i >= params.n) { break; }
    let cell = i / 2u;
    let at = select(cell / params.width, cell % params.width, i % 2u == 0u);
    word |= encode_y(lane, (f32(at) + params.offset) * params.stride);
  }
  y[word_at] = word;
}
