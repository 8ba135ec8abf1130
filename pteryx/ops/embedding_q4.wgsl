// y[i, e] = (code(token i, e) - zero) * scale(token, e / group). One u32 word of y per invocation.
// Host guarantees: y is [count, width]; the prelude gives `fn code(token: u32, e: u32) -> f32`, `fn zero(at: u32) -> f32`
// and `rows_of_groups`: whether scales are [vocabulary, groups], or their transpose with rows of `scale_row`.
// For an id outside the table row 0 is read.
#include "common/index.wgsl"

struct Params { count: u32, width: u32, vocabulary: u32, row_bytes: u32, group: u32, scale_row: u32, fault: u32 }
@group(0) @binding(0) var<uniform> params: Params;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let w = flat_id(group, groups, local, 64u);
  let n = params.count * params.width;
  if (w * y_lanes >= n) { return; }
  var word = 0u;
  for (var lane = 0u; lane < y_lanes; lane++) {
    let i = w * y_lanes + lane;
    if (i >= n) { break; }
    let token = u32(max(place_indices(i / params.width, i32(params.vocabulary)), 0));
    let e = i % params.width;
    let g = e / params.group;
    let at = select(g * params.scale_row + token, token * params.scale_row + g, rows_of_groups);
    word |= encode_y(lane, (code(token, e) - zero(at)) * load_scales(at));
  }
  y[w] = word;
}
