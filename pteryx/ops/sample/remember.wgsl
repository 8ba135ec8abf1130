// history[start + i] = tokens[i]. One invocation per token. Host guarantees: start + n <= size of history; start is live.
#option live_slots
#tensor tokens read i32
#tensor history raw_write u32
#include "common/index.wgsl"
#include "common/live.wgsl"

struct Params { n: u32, start: u32 }
@group(0) @binding(0) var<uniform> params: Params;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = flat_id(group, groups, local, 64u);
  if (i >= params.n) { return; }
  history[u32(live(params.start)) + i] = bitcast<u32>(load_tokens(i));
}
