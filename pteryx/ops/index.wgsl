// y[c] = x[x_at(c) + index[index_at(c)] * step], bit for bit. One u32 word of y per invocation.
// Host guarantees: x and y have one element type; dims are those of y, merged and right-aligned, first = 8 - rank; the
// strides of x leave the indexed dim out. For an index outside x the first place is read.
#option arg 0..63  // of the node: the index
#option from_end   // negative ones count from there
#option reports
#tensor x raw u32
#tensor index read i32
#tensor y words
#include "common/index.wgsl"
#include "common/lanes.wgsl"

struct Params {
  dims: array<vec4<u32>, 2>, x_strides: array<vec4<u32>, 2>, index_strides: array<vec4<u32>, 2>,
  n: u32, first: u32, step: u32, extent: i32, fault: u32
}
@group(0) @binding(0) var<uniform> params: Params;

#include "common/place.wgsl" name=index
#include "common/walk.wgsl" name=offsets operands=2 a=x_strides b=index_strides

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let w = flat_id(group, groups, local, 64u);
  if (w * y_lanes >= params.n) { return; }
  var word = 0u;
  for (var lane = 0u; lane < y_lanes; lane++) {
    let i = w * y_lanes + lane;
    if (i >= params.n) { break; }
    let start = offsets(i);
    let at = start.x + u32(max(place_index(start.y, params.extent), 0)) * params.step;
    word |= moved(x[at / y_lanes], at, lane);
  }
  y[w] = word;
}
