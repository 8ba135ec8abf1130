// y[batch, m, n] = epilogue(sum over k of a[batch, m, k] * b[batch, k, n]).
// One invocation per word of y, with nothing shared: 2 loads per multiplication, so bound by the cache at a few percent
// of the arithmetic. Fits every device; the other routes are tested against it.
// Host guarantees: nothing but the sizes.
#option has_add
#if has_add
#option add_type f16 | f32
#end
#option activation none | relu | silu | gelu | gelu_tanh
#option has_scale
#if has_scale
#option scale_type f16 | f32
#end
#option has_residual
#if has_residual
#option residual_type f16 | f32
#end
#tensor a read f16 | f32
#tensor b read f16 | f32
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
    let n = i % params.n;
    let m = i / params.n % params.m;
    let batch = i / params.n / params.m;
    let a_base = batch * params.a_batch + m * params.a_row;
    let b_base = batch * params.b_batch + n * params.b_column;
    var sum = 0.0;
    for (var first = 0u; first < params.k; first += 32u) {
      var part = 0.0;
      for (var k = first; k < min(first + 32u, params.k); k++) {
        part += load_a(a_base + k * params.a_column) * load_b(b_base + k * params.b_row);
      }
      sum += part;
    }
    word |= encode_y(lane, epilogue(sum, batch, m, n));
  }
  y[w] = word;
}
