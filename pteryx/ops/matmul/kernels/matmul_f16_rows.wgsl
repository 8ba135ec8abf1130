// a as subgroup_matrix_tile.wgsl reads it: y[batch, m, k] = a[batch, m, k] in f16, in whole steps and tiles.
#option a_type f16 | f32
#option a_fours
#option fill_m 1..128
#option wide 1..1048576
#let interleaved = 0
#include "matmul/common/matmul.wgsl"
#include "matmul/common/a.wgsl"
fn batches() -> u32 { return params.batches; }
fn four_of(row: u32, k: u32) -> vec4<f32> { return a4(row / params.m * params.a_batch, row % params.m, k); }
#include "common/f16_rows.wgsl"
