// y[i] = apply(a[i], b[i]) with broadcasting. `per_invocation` u32 words of y per invocation.
// Host guarantees: dims are those of y, merged and right-aligned, first = 8 - rank; a stride of 0 repeats.
#option compute f32 | i32
#option apply text  // over a and b
#option scalar      // b is a number
#option alpha       // and is multiplied by another
#tensor a read
#if !scalar
#tensor b read
#end
#tensor y words
#include "common/index.wgsl"

struct Params {
  dims: array<vec4<u32>, 2>, a_strides: array<vec4<u32>, 2>, b_strides: array<vec4<u32>, 2>,
  n: u32, first: u32, alpha: f32, alpha_int: i32, scalar: f32, scalar_int: i32
}
@group(0) @binding(0) var<uniform> params: Params;

#include "common/arithmetic.wgsl"
#include "common/walk.wgsl" name=offsets operands=2 a=a_strides b=b_strides

alias ct = $compute;
fn apply(a: ct, b: ct) -> ct { return $apply; }
fn b_at(offset: u32) -> ct {
#if scalar && compute == f32
  let b = params.scalar;
#elif scalar
  let b = params.scalar_int;
#else
  let b = ct(load_b(offset));
#end
#if alpha && compute == f32
  return b * params.alpha;
#elif alpha
  return b * params.alpha_int;
#else
  return b;
#end
}

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
      let at = offsets(i);
      word |= encode_y(lane, y_t(apply(ct(load_a(at.x)), b_at(at.y))));
    }
    y[w] = word;
  }
}
