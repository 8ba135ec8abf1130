// The params of every route of a quantised linear layer.
// y[m, n] = finish(sum over k of x[m, k] * (code[n, k] * scale[n, k] + minimum[n, k]))
//   splits, chunk          parts that k is cut into, and of how many k
//   ends                   of several results, the column behind each
//   first_column, width    the columns of a kernel that makes one result at a time
//   position, table_start  rows of caches and tables, as live() reads them
//   eps, head_eps          of the norm of x, and of those of heads of queries and keys
#include "common/index.wgsl"

struct Params {
  m: u32, n: u32, k: u32, row_bytes: u32, group: u32, scale_row: u32, splits: u32, chunk: u32,
  factor: f32, x_zero: f32, eps: f32, head_eps: f32, first_column: u32,
  width: u32, position: u32, table_start: u32, ends: vec4<u32>
}
#option fixed  // sizes are known when the kernel is made, so that nothing waits for them; `given` has the rest
#if fixed
#option rows 1..8
#option n 1..16777216
#option k 1..16777216
#option row_bytes 16..16777216
#option group_size 1..16777216
#option scale_row 0..16777216
#option end0 0..16777216
#option end1 0..16777216
#option end2 0..16777216
#option end3 0..16777216
#option factor_bits 0..2139095039
#option eps_bits 0..2139095039
#option fixed_slots  // so are the slots of the live scalars that say where rows of caches and tables are
#option position_slot 0..65535
#option table_slot 0..65535
@group(0) @binding(0) var<uniform> given: Params;
const params = Params($(rows)u, $(n)u, $(k)u, $(row_bytes)u, $(group_size)u, $(scale_row)u, 1u, $(k)u, 0.0, 0.0, 0.0, 0.0,
                      0u, 0u, 0u, 0u, vec4<u32>($(end0)u, $(end1)u, $(end2)u, $(end3)u));
fn factor() -> f32 { return bitcast<f32>($(factor_bits)u); }
fn x_zero() -> f32 { return given.x_zero; }
fn eps() -> f32 { return bitcast<f32>($(eps_bits)u); }
fn head_eps() -> f32 { return given.head_eps; }
#if fixed_slots
fn first_position() -> u32 { return 0x80000000u | $(position_slot)u; }
fn table_start() -> u32 { return 0x80000000u | $(table_slot)u; }
#else
fn first_position() -> u32 { return given.position; }
fn table_start() -> u32 { return given.table_start; }
#end
#else
@group(0) @binding(0) var<uniform> params: Params;
fn factor() -> f32 { return params.factor; }
fn x_zero() -> f32 { return params.x_zero; }
fn eps() -> f32 { return params.eps; }
fn head_eps() -> f32 { return params.head_eps; }
fn first_position() -> u32 { return params.position; }
fn table_start() -> u32 { return params.table_start; }
#end
