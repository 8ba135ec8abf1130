// What every route of a matrix product has: y[batch, m, n] = epilogue(sum over k of a[batch, m, k] * b[batch, k, n]).
// a.wgsl, b.wgsl and put.wgsl read the operands and write y, whatever their element types, strides and packing.
#include "common/index.wgsl"

struct Params {
  batches: u32, m: u32, n: u32, k: u32,
  a_batch: u32, a_row: u32, a_column: u32,
  b_batch: u32, b_row: u32, b_column: u32,
  add_batch: u32, add_row: u32, add_column: u32,
  alpha: f32, beta: f32, splits: u32, chunk: u32,
  scale_row: u32, scale_column: u32
}
@group(0) @binding(0) var<uniform> params: Params;
