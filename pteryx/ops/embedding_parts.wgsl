// y[i, e] = element(row of token i, e) for the tokens whose rows are in this part of the table: [first, first + rows).
// Other elements of y keep what they hold: a dispatch for each part makes the whole. One u32 word of y per invocation.
// Host guarantees: y is [count, width], a row of the table `row` elements; the prelude gives
// `fn element(row: u32, e: u32) -> u32`, the bits of an element of y.
// For an id outside the table row 0 is read.
#include "common/index.wgsl"

struct Params { count: u32, width: u32, vocabulary: u32, first: u32, rows: u32, row: u32, group: u32, scale_row: u32, fault: u32 }
@group(0) @binding(0) var<uniform> params: Params;

const bits = 32u / y_lanes;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let w = flat_id(group, groups, local, 64u);
  let n = params.count * params.width;
  if (w * y_lanes >= n) { return; }
  var word = y[w];
  for (var lane = 0u; lane < y_lanes; lane++) {
    let i = w * y_lanes + lane;
    if (i >= n) { break; }
    let token = u32(max(place_indices(i / params.width, i32(params.vocabulary)), 0));
    if (token < params.first || token - params.first >= params.rows) { continue; }
    word = insertBits(word, element(token - params.first, i % params.width), lane * bits, bits);
  }
  y[w] = word;
}
