// What every route of a quantised linear layer has:
//   y[m, n] = finish(sum over k of x[m, k] * code[n, k] * scale(n, k), m * params.n + n, n)
// The prelude gives `scale`, `finish`,
//   fn x4(m: u32, k: u32) -> vec4<f32>   x at (m, k .. k+3), k a multiple of 4, 0 outside
//   fn put2(part: u32, m: u32, n: u32, v: vec2<f32>)   y at (m, n) and (m, n+1), n even, where they exist
// and for the weights, which lie in rows of whole vec4<u32>, `unit` (codes in one of them) and
//   fn fetch(n: u32, u: u32) -> vec4<u32>      unit u of row n
//   fn quad(p: vec4<u32>, j: u32, n: u32, k: u32) -> vec4<f32>   codes 4j .. 4j+3 of unit p, which is at (n, k), each
//                                              larger by `code_offset`; scaled already where a unit has several scales
//   fn unit_scale(n: u32, k: u32) -> f32       the scale of the unit at (n, k); 1 where it has several
// so that a route is the same for every packing.
#include "common/index.wgsl"

// ends: the column behind each of several results.
struct Params {
  m: u32, n: u32, k: u32, row_bytes: u32, group: u32, scale_row: u32, splits: u32, chunk: u32,
  factor: f32, x_zero: f32, ends: vec4<u32>
}
@group(0) @binding(0) var<uniform> params: Params;
