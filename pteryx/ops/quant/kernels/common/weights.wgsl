// Weights that lie in rows of whole vec4<u32>, `unit` codes in each of them:
//   fetch(n, u)         unit u of row n
//   quad(p, j, n, k)    codes 4j .. 4j+3 of unit p, which is at (n, k), each larger by `code_offset`; the weights themselves
//                       where a unit has several scales
//   unit_scale(n, k)    the scale of the unit at (n, k); 1 where it has several
//   unit_minimum(n, k)  what is added to its weights; 0 where it has several
// Who includes it declares `scales_type` and, with has_minimums, `minimums_type`.
#option codes nibbles | bytes           // 4 bits offset by 8, even k in the low nibble; 8 bits, signed
#option scale_for unit | four | code    // what shares a scale at least
#tensor weight raw vec4<u32>
#option has_minimums                    // what code 0 stands for, beside every scale
#tensor scales read f16 | f32
#if has_minimums
#tensor minimums read f16 | f32
#end
#include "quant/kernels/common/scale_index.wgsl"

#if codes == bytes
const unit: u32 = 16u;
#else
const unit: u32 = 32u;
#end
#if codes == nibbles && scale_for == unit
const code_offset: f32 = 8.0;
#else
const code_offset: f32 = 0.0;
#end

fn fetch(n: u32, u: u32) -> vec4<u32> { return weight[n * (params.row_bytes / 16u) + u]; }

fn scale(n: u32, k: u32) -> f32 { return load_scales(scale_index(n, k)); }
fn minimum(n: u32, k: u32) -> f32 {
#if has_minimums
  return load_minimums(scale_index(n, k));
#else
  return 0.0;
#end
}

fn four_codes(p: vec4<u32>, j: u32) -> vec4<f32> {
#if codes == bytes
  return vec4<f32>((vec4<i32>(bitcast<i32>(p[j])) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u));
#else
  return vec4<f32>((vec4<u32>(p[j / 2u] >> (j % 2u * 16u)) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u));
#end
}

fn quad(p: vec4<u32>, j: u32, n: u32, k: u32) -> vec4<f32> {
#if scale_for == unit
  return four_codes(p, j);
#else
  let at = k + j * 4u;
  let last = params.k - 1u;
#if codes == bytes
  let v = four_codes(p, j);
#else
  let v = four_codes(p, j) - 8.0;
#end
#if scale_for == four
  return v * scale(n, min(at, last)) + minimum(n, min(at, last));
#else
  let k1 = min(at + 1u, last);
  let k2 = min(at + 2u, last);
  let k3 = min(at + 3u, last);
  return v * vec4<f32>(scale(n, min(at, last)), scale(n, k1), scale(n, k2), scale(n, k3)) +
      vec4<f32>(minimum(n, min(at, last)), minimum(n, k1), minimum(n, k2), minimum(n, k3));
#end
#end
}

fn unit_scale(n: u32, k: u32) -> f32 {
#if scale_for == unit
  return scale(n, k);
#else
  return 1.0;
#end
}

fn unit_minimum(n: u32, k: u32) -> f32 {
#if scale_for == unit
  return minimum(n, k);
#else
  return 0.0;
#end
}
