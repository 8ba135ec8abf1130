// y[i] = part of c[i], a[i] and b[i], each broadcast. One u32 word of y per invocation.
// Host guarantees: dims are those of y, merged and right-aligned, first = 8 - rank; a stride of 0 repeats.
// The prelude gives `fn part(lane: u32, at_c: u32, at_a: u32, at_b: u32) -> u32`, the element's bits in their lane.
#include "common/index.wgsl"
#include "common/lanes.wgsl"

struct Params {
  dims: array<vec4<u32>, 2>, c_strides: array<vec4<u32>, 2>, a_strides: array<vec4<u32>, 2>,
  b_strides: array<vec4<u32>, 2>, n: u32, first: u32, fill: u32
}
@group(0) @binding(0) var<uniform> params: Params;

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
    var at_c = 0u;
    var at_a = 0u;
    var at_b = 0u;
    for (var d = 8u; d > params.first; d--) {
      let q = (d - 1u) >> 2u;
      let r = (d - 1u) & 3u;
      let size = params.dims[q][r];
      let at = rest % size;
      rest /= size;
      at_c += at * params.c_strides[q][r];
      at_a += at * params.a_strides[q][r];
      at_b += at * params.b_strides[q][r];
    }
    word |= part(lane, at_c, at_a, at_b);
  }
  y[w] = word;
}
