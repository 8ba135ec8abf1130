// y[m, n] = finish(sum over k of x[m, k] * (code[n, k] * scale[n, k] + minimum[n, k])) with f16 operands and f32 sums, on
// devices without subgroup matrices or f16. common/f16_tile.wgsl says how, and what the host guarantees; a is x in f16, as it
// is or by qlinear_f16_rows.wgsl.
#option row_fours 1..2
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
#option group 1..1048576
#option steps 1..65536
#option splits 1..64
#option store parts | fours | elements  // [splits, m, n] of sums as they are, m and n up to whole tiles; or finished
#option interleaved
#option a_filled
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
#let results = 1
#let half_arithmetic = 0
#let paired_side = 0
#if codes == bytes || scale_for != unit
#require !interleaved
#end
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
#tensor y raw_write vec4<f32>
#else
#include "quant/kernels/common/results4.wgsl"
#end
#include "common/f16_tile.wgsl"

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
#include "common/f16_tile_sums.wgsl"
#for i in 0..row_fours * 4
  {
    let m = first_m + $(i / 4 * 64 + i % 4)u + row * 4u;
    let n = first_n + column * 4u;
#if store == parts
    let at = ((part * tiles_m * tile_m + m) * (tiles_n * tile_n) + n) / 4u;
    y[at] = sum$(i)_0;
    y[at + 16u] = sum$(i)_1;
#else
    put4(part, m, n, sum$(i)_0);
    put4(part, m, n + 64u, sum$(i)_1);
#end
  }
#end
}
