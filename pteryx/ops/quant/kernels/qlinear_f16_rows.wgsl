// x as subgroup_matrix_tile.wgsl reads it: y[m, k] = x[m, k] in f16, in whole steps, codes less their zero point.
#option x_type f16 | f32 | i8
#option x_fours
#option interleaved
#option wide 1..1048576
#let fill_m = 1
#let fixed = 0
#include "quant/kernels/common/params.wgsl"
#include "quant/kernels/common/x.wgsl"
fn batches() -> u32 { return 1u; }
fn four_of(row: u32, k: u32) -> vec4<f32> { return x4(row, k); }
#include "common/f16_rows.wgsl"
