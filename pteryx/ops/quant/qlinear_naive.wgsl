// y[m, c] = finish(sum over k of x[m, k] * code[n, k] * scale(n, k)) with n = first_column + c.
// One invocation per word of y, one code at a time: fits every device and every layout. The other routes are tested
// against it. The prelude gives `first_column` and `width`, `fn x_at(m: u32, k: u32) -> f32` and `fn code(n: u32, k: u32) -> f32`.
// Host guarantees: first_column + width <= n.
#include "quant/common/qlinear.wgsl"

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let w = flat_id(group, groups, local, 64u);
  let count = params.m * width();
  if (w * y_lanes >= count) { return; }
  var word = 0u;
  for (var lane = 0u; lane < y_lanes; lane++) {
    let i = w * y_lanes + lane;
    if (i >= count) { break; }
    let m = i / width();
    let n = first_column() + i % width();
    var sum = 0.0;
    for (var first = 0u; first < params.k; first += 32u) {
      var part = 0.0;
      for (var k = first; k < min(first + 32u, params.k); k++) { part += x_at(m, k) * code(n, k) * scale(n, k); }
      sum += part;
    }
    word |= encode_y(lane, finish(sum, m * params.n + n, n));
  }
  y[w] = word;
}
