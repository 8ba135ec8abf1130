// Adds up the parts of a product whose k was cut, for a result that has `width` columns of it from `first_column` on.
// One invocation per word of y: y[m, c] = finish(sum over splits of parts[split, m, first_column + c]).
// Host guarantees: parts is [splits, m, n] in f32; first_column + width <= n.
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
    let n = first_column() + i % width();
    let at = i / width() * params.n + n;
    var sum = 0.0;
    for (var s = 0u; s < params.splits; s++) { sum += load_parts(s * params.m * params.n + at); }
    word |= encode_y(lane, finish(sum, at, n));
  }
  y[w] = word;
}
