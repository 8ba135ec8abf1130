// y[m, n] = finish(sum over k of x[m, k] * weight[n, k]), with what is around the product in it: the RMS norm of x, several
// results or a gate over them, or the rotation of queries and keys.
// A few rows of x. A team of invocations makes `rows` x 4 results, or two times as many where columns go in pairs, and shares
// out k by eights; weights are read once, neighbours side by side, and the sums of all rows are folded together.
// Bytes: n * k of weights once, x from the cache. 2 * rows operations per weight: bound by memory.
// Host guarantees: m = rows, k a multiple of 8.
#option rows 1..8
#option normed                              // x times norm, over the RMS of its row
#if normed
#option norm_type f16 | f32
#end
#option gated                               // y = silu(first half of the columns) * second half
#option rotated                             // queries, keys and values: see rotated.wgsl
#if rotated
#option halves
#option half_size 1..512
#option heads 1..1024
#option kv_heads 1..1024
#option capacity 1..16777216
#option cache_type f16 | f32
#option cos_of_type f16 | f32
#option sin_of_type f16 | f32
#option live_slots
#let in_halves = halves
#let places = all
#require !halves || half_size % 4 == 0
#else
#let in_halves = 0
#end
#option x_type f16 | f32
#option weight_type f16 | f32
#option results 1..4
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
#option team 1..1024
#option wg_size 1..1024
#option block 4..128
#require results == 1 || row_words
#require !gated || (results == 1 && !has_residual)
#require !rotated || (!gated && results == 1 && !has_residual && row_words)
#let parts = 0
#let fixed = 0
#let x_fours = 1
#if gated || in_halves
#let quads = 2
#else
#let quads = 1
#end
#if normed
#let vectors = rows * quads + (rows + 3) / 4
#else
#let vectors = rows * quads
#end
#include "quant/kernels/common/params.wgsl"
#include "quant/kernels/common/x.wgsl"
#if normed
#let k_whole = 0
#include "quant/kernels/common/norm.wgsl"
#end
#if weight_type == f16
#tensor weight raw vec4<u32>
#else
#tensor weight raw vec4<f32>
#end
#if rotated
#include "quant/kernels/common/rotated.wgsl"
#else
#include "quant/kernels/common/results.wgsl"
#end
#include "common/fold_many.wgsl"

const rows: u32 = $(rows)u;
const teams: u32 = wg_size / team;

// Eight of row n, from k on.
fn weight8(n: u32, k: u32) -> array<vec4<f32>, 2> {
#if weight_type == f16
  let w = weight[(n * params.k + k) / 8u];
  return array<vec4<f32>, 2>(vec4<f32>(unpack2x16float(w.x), unpack2x16float(w.y)),
                             vec4<f32>(unpack2x16float(w.z), unpack2x16float(w.w)));
#else
  let at = (n * params.k + k) / 4u;
  return array<vec4<f32>, 2>(weight[at], weight[at + 1u]);
#end
}

// Sums c and c + 1 of row m of a team, of one of its quads.
fn sums2(which: u32, quad: u32, m: u32, c: u32) -> vec2<f32> {
  let sums = folded(which, quad * rows + m, c);
#if normed
  let squares = folded(which, $(rows * quads)u + m / 4u, m % 4u / 2u * 2u);
  return sums * inverseSqrt(select(squares.x, squares.y, m % 2u == 1u) / f32(params.k) + eps());
#else
  return sums;
#end
}

@compute @workgroup_size(wg_size)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let first_unit = flat_group(group, groups) * teams;
  let unit = first_unit + local / team;
  let lane = local % team;
  // Columns past the end repeat the last, and are not stored.
#if gated
  let half = params.n / 2u;
#for q in 0..quads
#for c in 0..4
  let n$(q)_$c = $(q)u * half + min(unit * 4u + $(c)u, half - 1u);
#end
#end
#elif in_halves
  let first_of = column_of(min(unit * 4u, params.n / 2u - 4u));
#for q in 0..quads
#for c in 0..4
  let n$(q)_$c = first_of + $(q * half_size + c)u;
#end
#end
#else
#for c in 0..4
  let n0_$c = min(unit * 4u + $(c)u, params.n - 1u);
#end
#end
  var sums: array<vec4<f32>, $(rows * quads)>;
  for (var i = 0u; i < $(rows * quads)u; i++) { sums[i] = vec4<f32>(0.0); }
#if normed
  var squares: array<vec4<f32>, $((rows + 3) / 4)>;
  for (var i = 0u; i < $((rows + 3) / 4)u; i++) { squares[i] = vec4<f32>(0.0); }
#end
  for (var k = lane * 8u; k < params.k; k += team * 8u) {
#for q in 0..quads
#for c in 0..4
    let w$(q)_$c = weight8(n$(q)_$c, k);
#end
#end
#if normed
    let norm_low = norm4(k);
    let norm_high = norm4(k + 4u);
#end
#for m in 0..rows
    {
      var low = x4($(m)u, k);
      var high = x4($(m)u, k + 4u);
#if normed
      squares[$(m / 4)][$(m % 4)] += dot(low, low) + dot(high, high);
      low *= norm_low;
      high *= norm_high;
#end
#for q in 0..quads
      sums[$(q * rows + m)] +=
          vec4<f32>(dot(low, w$(q)_0[0]), dot(low, w$(q)_1[0]), dot(low, w$(q)_2[0]), dot(low, w$(q)_3[0])) +
          vec4<f32>(dot(high, w$(q)_0[1]), dot(high, w$(q)_1[1]), dot(high, w$(q)_2[1]), dot(high, w$(q)_3[1]));
#end
    }
#end
  }
  for (var i = 0u; i < $(rows * quads)u; i++) { fold_four(i, sums[i], local); }
#if normed
  for (var i = 0u; i < $((rows + 3) / 4)u; i++) { fold_four($(rows * quads)u + i, squares[i], local); }
#end
  workgroupBarrier();
  for (var i = local; i < teams * rows * 2u; i += wg_size) {
    let which = i / (rows * 2u);
    let m = i / 2u % rows;
    let c = i % 2u * 2u;
    let first = (first_unit + which) * 4u + c;
#if gated
    let n = first;
    if (n < half) {
      let gates = sums2(which, 0u, m, c);
      let ups = sums2(which, 1u, m, c);
      let next = min(n + 1u, half - 1u);
      let g = vec2<f32>(finish(gates.x, 0u, n), finish(gates.y, 0u, next));
      let up = vec2<f32>(finish(ups.x, 0u, half + n), finish(ups.y, 0u, half + next));
      let pair = g / (1.0 + exp(-g)) * up;
      let at = m * half + n;
#include "quant/kernels/common/store2.wgsl" to=y
    }
#elif in_halves
    put_halves(m, column_of(first), sums2(which, 0u, m, c), sums2(which, 1u, m, c));
#else
    put2(0u, m, first, sums2(which, 0u, m, c));
#end
  }
}
