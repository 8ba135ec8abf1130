// y[r, k, c] = sum, or product, of x[r, 0..k, c]. One invocation per row (r, c).
// Host guarantees: rows are outer x inner, inner elements apart along the row. The prelude gives `const product: bool`.
#include "common/index.wgsl"

struct Params { rows: u32, extent: u32, inner: u32 }
@group(0) @binding(0) var<uniform> params: Params;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let row = flat_id(group, groups, local, 64u);
  if (row >= params.rows) { return; }
  var at = (row / params.inner) * params.extent * params.inner + row % params.inner;
  var total = select(y_t(0), y_t(1), product);
  for (var k = 0u; k < params.extent; k++) {
    let v = y_t(load_x(at));
    total = select(total + v, total * v, product);
    store_y(at, total);
    at += params.inner;
  }
}
