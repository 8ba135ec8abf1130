// Adds up the parts of a product whose k was cut: y[i] = epilogue(sum over splits of parts[split, i]).
// One invocation per word of y.
// Host guarantees: parts is [splits, batches, m, n].
#option has_add
#if has_add
#option add_type f16 | f32
#end
#tensor parts read f32
#include "matmul/common/matmul.wgsl"
#include "matmul/common/epilogue.wgsl"
#tensor y words f16 | f32

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let w = flat_id(group, groups, local, 64u);
  let count = params.batches * params.m * params.n;
  if (w * y_lanes >= count) { return; }
  var word = 0u;
  for (var lane = 0u; lane < y_lanes; lane++) {
    let i = w * y_lanes + lane;
    if (i >= count) { break; }
    var sum = 0.0;
    for (var s = 0u; s < params.splits; s++) { sum += load_parts(s * count + i); }
    word |= encode_y(lane, epilogue(sum, i / params.n / params.m, i / params.n % params.m, i % params.n));
  }
  y[w] = word;
}
