// y = x, word by word whatever the element type. One u32 word per invocation.
// Host guarantees: x and y hold n words.
#tensor x raw u32
#tensor y raw_write u32
#include "common/index.wgsl"

struct Params { n: u32 }
@group(0) @binding(0) var<uniform> params: Params;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let w = flat_id(group, groups, local, 64u);
  if (w < params.n) { y[w] = x[w]; }
}
