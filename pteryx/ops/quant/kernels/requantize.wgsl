// y[m, k] = (clamp(round(x[m, k] / scale[m]) + zero[m], -128, 127) - zero[m]) * scale[m]: what is left of x after it
// was 8-bit codes. One invocation per element.
// Host guarantees: y is f32, n = rows * k.
#tensor x read f16 | f32
#tensor scale read f16 | f32
#tensor zero read i8 | i32
#tensor y words f32
#include "common/index.wgsl"

struct Params { n: u32, k: u32 }
@group(0) @binding(0) var<uniform> params: Params;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = flat_id(group, groups, local, 64u);
  if (i >= params.n) { return; }
  let scale = load_scale(i / params.k);
  let zero = f32(load_zero(i / params.k));
  let code = clamp(round(load_x(i) * (1.0 / scale)) + zero, -128.0, 127.0);
  y[i] = bitcast<u32>((code - zero) * scale);
}
