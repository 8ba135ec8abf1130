// y[b, i, j] = p-norm of x1[b, i] - x2[b, j]. One u32 word of y per invocation.
// Host guarantees: dims are those of y, right-aligned, first = 8 - rank; strides lead to the rows of x1 and x2.
// The prelude gives `fn term(d: f32) -> f32`, `fn combine(a: f32, b: f32) -> f32` and `fn finish(a: f32) -> f32`.
#include "common/index.wgsl"

struct Params {
  dims: array<vec4<u32>, 2>, a_strides: array<vec4<u32>, 2>, b_strides: array<vec4<u32>, 2>,
  n: u32, first: u32, width: u32, p: f32
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
    var at_a = 0u;
    var at_b = 0u;
    for (var d = 8u; d > params.first; d--) {
      let size = params.dims[(d - 1u) >> 2u][(d - 1u) & 3u];
      let c = rest % size;
      rest /= size;
      at_a += c * params.a_strides[(d - 1u) >> 2u][(d - 1u) & 3u];
      at_b += c * params.b_strides[(d - 1u) >> 2u][(d - 1u) & 3u];
    }
    var sum = 0.0;
    for (var k = 0u; k < params.width; k++) { sum = combine(sum, term(abs(load_a(at_a + k) - load_b(at_b + k)))); }
    word |= encode_y(lane, finish(sum));
  }
  y[w] = word;
}
