// What every route of a matrix product has: y[batch, m, n] = epilogue(sum over k of a[batch, m, k] * b[batch, k, n]).
// The prelude gives
//   fn a4(base: u32, m: u32, k: u32) -> vec4<f32>   a at (m, k .. k+3), 0 outside
//   fn b4(base: u32, n: u32, k: u32) -> vec4<f32>   b at (k .. k+3, n) where `along_k`, else
//   fn b4(base: u32, k: u32, n: u32) -> vec4<f32>   b at (k, n .. n+3); 0 outside
//   fn put2(batch: u32, m: u32, n: u32, v: vec2<f32>)   y at (m, n) and (m, n+1), n even, where they exist
// so a route is the same for every element type, stride and packing of its operands.
#include "common/index.wgsl"

struct Params {
  batches: u32, m: u32, n: u32, k: u32,
  a_batch: u32, a_row: u32, a_column: u32,
  b_batch: u32, b_row: u32, b_column: u32,
  add_batch: u32, add_row: u32, add_column: u32,
  alpha: f32, beta: f32, splits: u32, chunk: u32
}
@group(0) @binding(0) var<uniform> params: Params;
