// values[r, p] = x[r, k], indices[r, p] = k with p = the number of elements before x[r, k]: rows of x in order.
// Equal elements keep their order, NaN counts as the largest. One invocation per element.
// Host guarantees: rows are outer x inner, inner elements apart along the row; results hold the first `count` places.
// The prelude gives `const descending: bool`, `fn order(v: x_t) -> u32` (ascending keys) and `fn emit(at, v, k)`.
#include "common/index.wgsl"

struct Params { n: u32, extent: u32, inner: u32, count: u32 }
@group(0) @binding(0) var<uniform> params: Params;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = flat_id(group, groups, local, 64u);
  if (i >= params.n) { return; }
  let c = i % params.inner;
  let k = (i / params.inner) % params.extent;
  let outer = i / (params.inner * params.extent);
  let value = load_x(i);
  let own = order(value);
  var place = 0u;
  for (var j = 0u; j < params.extent; j++) {
    let other = order(load_x((outer * params.extent + j) * params.inner + c));
    let ahead = select((other < own), (other > own), descending);
    let before = ahead || (other == own && j < k);
    place += select(0u, 1u, before);
  }
  if (place < params.count) { emit((outer * params.count + place) * params.inner + c, value, i32(k)); }
}
