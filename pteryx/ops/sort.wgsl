// values[r, p] = x[r, k], indices[r, p] = k with p = the number of elements before x[r, k]: rows of x in order.
// Equal elements keep their order, NaN counts as the largest. One invocation per element.
// Host guarantees: rows are outer x inner, inner elements apart along the row; results hold the first `count` places.
#option descending
#option has_values
#option has_indices
#require has_values || has_indices
#tensor x read
#if has_values
#tensor values elements
#end
#if has_indices
#tensor indices elements i32
#end
#include "common/index.wgsl"

struct Params { n: u32, extent: u32, inner: u32, count: u32 }
@group(0) @binding(0) var<uniform> params: Params;

// Keys that go up with the elements.
fn order(v: x_t) -> u32 {
#if x_type == f16 || x_type == f32
  let b = bitcast<u32>(v);
  if ((b & 0x7fffffffu) > 0x7f800000u) { return 0xffffffffu; }
  if ((b & 0x7fffffffu) == 0u) { return 0x80000000u; }
  return select(b | 0x80000000u, ~b, b >= 0x80000000u);
#else
  return bitcast<u32>(v) ^ 0x80000000u;
#end
}

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
#if descending
    let ahead = other > own;
#else
    let ahead = other < own;
#end
    let before = ahead || (other == own && j < k);
    place += select(0u, 1u, before);
  }
  if (place >= params.count) { return; }
  let at = (outer * params.count + place) * params.inner + c;
#if has_values
  store_values(at, values_t(value));
#end
#if has_indices
  store_indices(at, i32(k));
#end
}
