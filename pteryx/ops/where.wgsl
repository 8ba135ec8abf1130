// y[i] = c[i] ? a[i] : b[i], or c[i] between a[i] and b[i], each broadcast. One u32 word of y per invocation.
// Host guarantees: dims are those of y, merged and right-aligned, first = 8 - rank; a stride of 0 repeats.
#option rule choose | clamp
#option compute f32 | i32  // clamp: what elements are compared as
#option raw                // choose: a and b have the element type of y
#option has_a              // choose without a: params.fill instead
#option has_b
#require rule == clamp || has_b
#require rule == choose || !raw
#tensor c read
#if has_a && raw
#tensor a raw u32
#elif has_a
#tensor a read
#end
#if has_b && raw
#tensor b raw u32
#elif has_b
#tensor b read
#end
#tensor y words
#include "common/index.wgsl"
#include "common/lanes.wgsl"

struct Params {
  dims: array<vec4<u32>, 2>, c_strides: array<vec4<u32>, 2>, a_strides: array<vec4<u32>, 2>,
  b_strides: array<vec4<u32>, 2>, n: u32, first: u32, fill: u32
}
@group(0) @binding(0) var<uniform> params: Params;

#include "common/walk.wgsl" name=offsets operands=3 a=c_strides b=a_strides c=b_strides

// The bits of an element in their lane.
fn part(lane: u32, at_c: u32, at_a: u32, at_b: u32) -> u32 {
#if rule == clamp
  var v = $(compute)(load_c(at_c));
#if has_a
  v = select(v, $(compute)(load_a(at_a)), v < $(compute)(load_a(at_a)));
#end
#if has_b
  v = select(v, $(compute)(load_b(at_b)), v > $(compute)(load_b(at_b)));
#end
  return encode_y(lane, y_t(v));
#else
#if raw
  let no = moved(b[at_b / y_lanes], at_b, lane);
#else
  let no = encode_y(lane, y_t(load_b(at_b)));
#end
#if !has_a
  let yes = params.fill << (lane * lane_bits);
#elif raw
  let yes = moved(a[at_a / y_lanes], at_a, lane);
#else
  let yes = encode_y(lane, y_t(load_a(at_a)));
#end
  return select(no, yes, load_c(at_c) != 0);
#end
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let w = flat_id(group, groups, local, 64u);
  if (w * y_lanes >= params.n) { return; }
  var word = 0u;
  for (var lane = 0u; lane < y_lanes; lane++) {
    let i = w * y_lanes + lane;
    if (i >= params.n) { break; }
    let at = offsets(i);
    word |= part(lane, at.x, at.y, at.z);
  }
  y[w] = word;
}
