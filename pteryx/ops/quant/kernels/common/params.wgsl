// The params of every route of a quantised linear layer.
// y[m, n] = finish(sum over k of x[m, k] * code[n, k] * scale[n, k])
//   splits, chunk          parts that k is cut into, and of how many k
//   ends                   of several results, the column behind each
//   first_column, width    the columns of a kernel that makes one result at a time
#include "common/index.wgsl"

struct Params {
  m: u32, n: u32, k: u32, row_bytes: u32, group: u32, scale_row: u32, splits: u32, chunk: u32,
  factor: f32, x_zero: f32, eps: f32, first_column: u32, width: u32, ends: vec4<u32>
}
@group(0) @binding(0) var<uniform> params: Params;
