// y[r, k, c] = sum, or product, of x[r, 0..k, c]. One invocation per row (r, c).
// Host guarantees: rows are outer x inner, inner elements apart along the row.
#option product
#tensor x read
#tensor y elements
#include "common/index.wgsl"

struct Params { rows: u32, extent: u32, inner: u32 }
@group(0) @binding(0) var<uniform> params: Params;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let row = flat_id(group, groups, local, 64u);
  if (row >= params.rows) { return; }
  var at = (row / params.inner) * params.extent * params.inner + row % params.inner;
#if product
  var total = y_t(1);
#else
  var total = y_t(0);
#end
  for (var k = 0u; k < params.extent; k++) {
    let v = y_t(load_x(at));
#if product
    total *= v;
#else
    total += v;
#end
    store_y(at, total);
    at += params.inner;
  }
}
