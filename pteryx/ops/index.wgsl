// y[c] = x[x_at(c) + index[index_at(c)] * step], bit for bit. One u32 word of y per invocation.
// Host guarantees: x and y have one element type; dims are those of y, merged and right-aligned, first = 8 - rank; the
// strides of x leave the indexed dim out. For an index outside x the first place is read.
#include "common/index.wgsl"

struct Params {
  dims: array<vec4<u32>, 2>, x_strides: array<vec4<u32>, 2>, index_strides: array<vec4<u32>, 2>,
  n: u32, first: u32, step: u32, extent: i32, fault: u32
}
@group(0) @binding(0) var<uniform> params: Params;

const bits = 32u / y_lanes;

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
    var at_index = 0u;
    for (var d = 8u; d > params.first; d--) {
      let size = params.dims[(d - 1u) >> 2u][(d - 1u) & 3u];
      let c = rest % size;
      rest /= size;
      at += c * params.x_strides[(d - 1u) >> 2u][(d - 1u) & 3u];
      at_index += c * params.index_strides[(d - 1u) >> 2u][(d - 1u) & 3u];
    }
    at += u32(max(place_index(at_index, params.extent), 0)) * params.step;
    word |= extractBits(x[at / y_lanes], (at % y_lanes) * bits, bits) << (lane * bits);
  }
  y[w] = word;
}
