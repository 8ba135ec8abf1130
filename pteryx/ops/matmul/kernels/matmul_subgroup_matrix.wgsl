// y[batch, m, n] = epilogue(sum over k of a[batch, m, k] * b[batch, k, n]) with subgroup matrices: f16 operands, f32 sums.
// common/subgroup_matrix_tile.wgsl says how, and what the host guarantees. Whole matrices are stored where alpha is 1.
#option b_type f16 | f32
#option b_load elements | fours | eights
#option along_k
#option b_whole  // n and k are whole tiles
#option pieces_m 1..4
#option pieces_n 1 | 2 | 4
#option subgroups_m 1..2
#option depth_sixteens 2 | 4 | 8
#option steps 0..65536
#option splits 1..64
#option a_filled
// parts, part_fours: sums as they are, as matrices or in vectors. whole: matrices where tiles are whole. fours, elements:
// finished, in vectors or one by one.
#option store parts | part_fours | whole | fours | elements
#option y_stride 0..16777216  // of parts and whole matrices in memory; 0: reckoned
#if store != parts && store != part_fours
#option y_type f16 | f32
#option has_add
#if has_add
#option add_type f16 | f32
#end
#option activation none | relu | silu | gelu | gelu_tanh
#option has_scale
#if has_scale
#option scale_type f16 | f32
#end
#option has_residual
#if has_residual
#option residual_type f16 | f32
#end
#option row_words
#end
#if store == whole
#require y_type == f32 && !has_add && activation == none && !has_scale && !has_residual && b_whole
#end
#require b_load != eights || b_type == f16
#let unit_b = 8
#let scaled_b = 0
#let from_residual = 0
#let rolled = 0
#include "matmul/common/matmul.wgsl"
#tensor a raw vec4<u32>
#include "matmul/common/b.wgsl"
#if store == parts
#tensor y raw_write f32
#elif store == part_fours
#include "common/subgroup_matrix_part_fours.wgsl"
#else
#include "matmul/common/put4.wgsl"
#end
#include "common/subgroup_matrix_tile.wgsl"
#if store != parts
var<workgroup> tile_y: array<array<vec4<f32>, 16u * wide_y>, 4>;
#end

fn batches() -> u32 { return params.batches; }
fn raw_b(batch: u32, n: u32, k: u32) -> vec4<u32> {
  let base = batch * params.b_batch;
#if b_load == eights
#if !b_whole
  if (n >= params.n || k >= params.k) { return vec4<u32>(0u); }
#end
#if along_k
  return b_eight(base, n, k);
#else
  return b_eight(base, k, n);
#end
#else
  let most = vec4<f32>(65504.0);  // what f16 can hold
#if along_k
  let low = clamp(b4(base, n, k), -most, most);
  let high = clamp(b4(base, n, k + 4u), -most, most);
#else
  let low = clamp(b4(base, k, n), -most, most);
  let high = clamp(b4(base, k, n + 4u), -most, most);
#end
  return vec4<u32>(pack2x16float(low.xy), pack2x16float(low.zw), pack2x16float(high.xy), pack2x16float(high.zw));
#end
}

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
#include "common/subgroup_matrix_sums.wgsl"
#if store == parts
#include "common/subgroup_matrix_parts.wgsl"
#else
#if store == whole
  if (first_m + tile_m <= params.m) {
#if y_stride == 0
    let stride = params.n;
#else
    const stride = $(y_stride)u;
#end
    let corner = (part * params.m + first_m + own_m * side_m) * stride + first_n + own_n * side_n;
#for i in 0..pieces_m
#for j in 0..pieces_n
    subgroupMatrixStore<row_major>(&y, corner + $(i * 16)u * stride + $(j * 16)u, sum$(i)_$(j), stride);
#end
#end
    return;
  }
#end
#include "common/subgroup_matrix_results.wgsl"
#end
}
