// y[b, i, j] = p-norm of x1[b, i] - x2[b, j]. One u32 word of y per invocation.
// Host guarantees: dims are those of y, right-aligned, first = 8 - rank; strides lead to the rows of x1 and x2.
#option norm count | sum | euclidean | largest | power  // p = 0, 1, 2, infinity, any other
#tensor a read f16 | f32
#tensor b read f16 | f32
#tensor y words f16 | f32
#include "common/index.wgsl"

struct Params {
  dims: array<vec4<u32>, 2>, a_strides: array<vec4<u32>, 2>, b_strides: array<vec4<u32>, 2>,
  n: u32, first: u32, width: u32, p: f32
}
@group(0) @binding(0) var<uniform> params: Params;

#include "common/walk.wgsl" name=offsets operands=2 a=a_strides b=b_strides

fn term(d: f32) -> f32 {
#if norm == count
  return select(0.0, 1.0, d != 0.0);
#elif norm == euclidean
  return d * d;
#elif norm == power
  return pow(d, params.p);
#else
  return d;
#end
}
fn combine(a: f32, b: f32) -> f32 {
#if norm == largest
  return max(a, b);
#else
  return a + b;
#end
}
fn finish(a: f32) -> f32 {
#if norm == euclidean
  return sqrt(a);
#elif norm == power
  return pow(a, 1.0 / params.p);
#else
  return a;
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
    var sum = 0.0;
    for (var k = 0u; k < params.width; k++) { sum = combine(sum, term(abs(load_a(at.x + k) - load_b(at.y + k)))); }
    word |= encode_y(lane, finish(sum));
  }
  y[w] = word;
}
