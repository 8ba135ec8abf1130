// y[m, c] = finish(sum over k of x[m, k] * (code[n, k] * scale[n, k] + minimum[n, k])) with n = first_column + c.
// One invocation per word of y, one code at a time: fits every device and every layout. The other routes are tested
// against it.
// Host guarantees: first_column + width <= n.
#option codes low_first | high_first | bytes  // 4 bits offset by 8, even k in the low or the high nibble; 8 bits, signed
#option scale_order flat | groups | blocks
#option has_minimums
#option has_bias
#if has_bias
#option bias_type f16 | f32
#end
#option has_residual
#if has_residual
#option residual_type f16 | f32
#end
#tensor x read f16 | f32 | i8
#tensor weight read u8 | i8
#tensor scales read f16 | f32
#if has_minimums
#tensor minimums read f16 | f32
#end
#let fixed = 0
#include "quant/kernels/common/params.wgsl"
#include "quant/kernels/common/finish.wgsl"
#include "quant/kernels/common/scale_index.wgsl"
#tensor y words f16 | f32

fn x_at(m: u32, k: u32) -> f32 {
#if x_type == i8
  return f32(load_x(m * params.k + k)) - x_zero();
#else
  return load_x(m * params.k + k);
#end
}

fn code(n: u32, k: u32) -> f32 {
#if codes == bytes
  return f32(load_weight(n * params.row_bytes + k));
#else
  let byte = u32(load_weight(n * params.row_bytes + k / 2u));
#if codes == low_first
  let nibble = k % 2u;
#else
  let nibble = (k + 1u) % 2u;
#end
  return f32((byte >> (nibble * 4u)) & 15u) - 8.0;
#end
}

fn weight_at(n: u32, k: u32) -> f32 {
#if has_minimums
  return code(n, k) * load_scales(scale_index(n, k)) + load_minimums(scale_index(n, k));
#else
  return code(n, k) * load_scales(scale_index(n, k));
#end
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let w = flat_id(group, groups, local, 64u);
  let count = params.m * params.width;
  if (w * y_lanes >= count) { return; }
  var word = 0u;
  for (var lane = 0u; lane < y_lanes; lane++) {
    let i = w * y_lanes + lane;
    if (i >= count) { break; }
    let m = i / params.width;
    let n = params.first_column + i % params.width;
    var sum = 0.0;
    for (var first = 0u; first < params.k; first += 32u) {
      var part = 0.0;
      for (var k = first; k < min(first + 32u, params.k); k++) { part += x_at(m, k) * weight_at(n, k); }
      sum += part;
    }
    word |= encode_y(lane, finish(sum, m * params.n + n, n));
  }
  y[w] = word;
}
