// y[i] = apply(a[i], b[i]) with broadcasting. `per_invocation` u32 words of y per invocation.
// Host guarantees: dims are those of y, merged and right-aligned, first = 8 - rank; a stride of 0 repeats.
// The prelude gives `alias ct`, `fn apply(a: ct, b: ct) -> ct` and `fn b_at(offset: u32) -> ct`.
#include "common/index.wgsl"

struct Params {
  dims: array<vec4<u32>, 2>, a_strides: array<vec4<u32>, 2>, b_strides: array<vec4<u32>, 2>,
  n: u32, first: u32, alpha: f32, alpha_int: i32, scalar: f32, scalar_int: i32
}
@group(0) @binding(0) var<uniform> params: Params;

@compute @workgroup_size(wide_group)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let begin = flat_group(group, groups) * wide_group * per_invocation + local;
  for (var k = 0u; k < per_invocation; k++) {
    let w = begin + k * wide_group;
    if (w * y_lanes >= params.n) { return; }
    var word = 0u;
    for (var lane = 0u; lane < y_lanes; lane++) {
      let i = w * y_lanes + lane;
      if (i >= params.n) { break; }
      var rest = i;
      var at_a = 0u;
      var at_b = 0u;
      for (var d = 8u; d > params.first; d--) {
        let size = params.dims[(d - 1u) >> 2u][(d - 1u) & 3u];
        let c = rest % size;
        rest /= size;
        at_a += c * params.a_strides[(d - 1u) >> 2u][(d - 1u) & 3u];
        at_b += c * params.b_strides[(d - 1u) >> 2u][(d - 1u) & 3u];
      }
      word |= encode_y(lane, y_t(apply(ct(load_a(at_a)), b_at(at_b))));
    }
    y[w] = word;
  }
}
