// What every route of a quantised linear layer has:
//   y[m, n] = finish(sum over k of x[m, k] * code[n, k] * scale(n, k), n)
// The prelude gives `scale`, `finish`,
//   fn x4(m: u32, k: u32) -> vec4<f32>   x at (m, k .. k+3), k a multiple of 4, 0 outside
//   fn put2(part: u32, m: u32, n: u32, v: vec2<f32>)   y at (m, n) and (m, n+1), n even, where they exist
// and for the weights `unit` (how many of k a fetch has), `alias packed`,
//   fn fetch(n: u32, u: u32) -> packed         unit u of row n
//   fn quad(p: packed, j: u32) -> vec4<f32>    its codes 4j .. 4j+3, each larger by `code_offset`
//   fn unit_scale(n: u32, k: u32) -> f32       the scale of the unit that holds k
// so that a route is the same for every packing.
#include "common/index.wgsl"

struct Params {
  m: u32, n: u32, k: u32, row_bytes: u32, group: u32, scale_row: u32, splits: u32, chunk: u32,
  factor: f32, x_zero: f32
}
@group(0) @binding(0) var<uniform> params: Params;
