// y[m, n] = finish(sum over k of x[m, k] * (code[n, k] * scale[n, k] + minimum[n, k])) with subgroup matrices:
// f16 operands, f32 sums.
// common/subgroup_matrix_tile.wgsl says how, and what the host guarantees; a is x in f16, as it is or by qlinear_f16_rows.wgsl.
#option codes nibbles | bytes
#option scale_order flat | groups | blocks
#option scale_for unit | four | code
#option scales_type f16 | f32
#option has_minimums
#if has_minimums
#option minimums_type f16 | f32
#end
#option n_whole
#option k_whole
#option row_units 1..65536
#option a_filled
#option interleaved
#if codes == bytes || scale_for != unit
#require !interleaved
#end
#option group 1..1048576
#option pieces_m 1..4
#option pieces_n 1 | 2 | 4
#option subgroups_m 1..2
#option depth_sixteens 2 | 4 | 8
#option steps 1..65536
#option splits 1..64
#option rolled
// parts, part_fours: sums as they are, as matrices or in vectors.
// whole: matrices where tiles are whole and columns of one result, f32 with nothing added but a residual, with which sums
// begin.
// fours, elements: finished, in vectors or one by one.
// gated: silu(the first half of the columns) * the second, in vectors of eight.
#option store parts | part_fours | whole | fours | elements | gated
#option paired_side 0..32  // of the halves that a subgroup has side by side: gates, and what they let through
#option results 1..4
#option y_stride 0..16777216
#option row_words
#option has_bias
#if has_bias
#option bias_type f16 | f32
#end
#option has_residual
#if has_residual
#option residual_type f16 | f32
#end
#option y_type f16 | f32
#require results + has_bias + has_residual + has_minimums <= 5  // a device may have no more than eight buffers
#if store == whole
#require y_type == f32 && !has_bias && n_whole
#if has_residual
#require residual_type == f32 && results == 1
#end
#end
#if store == gated
#require paired_side == pieces_n * 8 && !has_residual && results == 1 && pieces_n % 2 == 0
#elif store != parts && store != part_fours
#require paired_side == 0
#end
#if store == elements
#require results == 1 || row_words
#end
#let along_k = 1
#if store == whole && has_residual
#let from_residual = 1
#else
#let from_residual = 0
#end
#let half_arithmetic = 1
#if scale_for != unit
#let unit_b = 8
#let scaled_b = 0
#elif codes == bytes
#let unit_b = 16
#let scaled_b = 1
#else
#let unit_b = 32
#let scaled_b = 1
#end
#let fixed = 0
#include "quant/kernels/common/params.wgsl"
#tensor a raw vec4<u32>
#include "quant/kernels/common/matrix_weights.wgsl"
#if store == parts
#tensor y raw_write f32
#elif store == part_fours
#include "common/subgroup_matrix_part_fours.wgsl"
#elif store == gated
#include "quant/kernels/common/gated8.wgsl"
#else
#include "quant/kernels/common/results4.wgsl"
#end
#include "common/subgroup_matrix_tile.wgsl"
#if store != parts
var<workgroup> tile_y: array<array<vec4<f32>, 16u * wide_y>, 4>;
#end
fn batches() -> u32 { return 1u; }

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
#include "common/subgroup_matrix_sums.wgsl"
#if store == parts
#include "common/subgroup_matrix_parts.wgsl"
#elif store == gated
#include "quant/kernels/common/store_gated.wgsl"
#else
#if store == whole
  if (first_m + tile_m <= params.m) {
#if results == 1
#include "quant/kernels/common/store_matrices.wgsl" to=y result=0
#else
#for r in 0..results
    if (first_n < params.ends[$r]) {
#if r == 0
#include "quant/kernels/common/store_matrices.wgsl" to=y result=0
#else
#include "quant/kernels/common/store_matrices.wgsl" to=y$r result=$r
#end
      return;
    }
#end
#end
    return;
  }
#end
#include "common/subgroup_matrix_results.wgsl"
#end
}
