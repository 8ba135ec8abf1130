// y[m, n], keys[position + m, n] or values[position + m, n] = turned(normed(sum over splits of sums[split, m, n] + bias[n])): the
// sums of a product that makes queries, keys and values, turned and put where they belong.
// One invocation per two or four columns, or two pairs where these are half a head apart; with norms, one workgroup per head,
// and, where a device binds too few tensors, queries and caches by themselves.
// Host guarantees: sums is [splits, m, n] in f32, m and n up to multiples of fill_m and fill_n; n is a multiple of lanes, and of
// four with halves; norms have the size of a head.
#option lanes 2 | 4  // columns of an invocation; heads have a multiple of them
#option splits 1..16
#option fill_m 1..128
#option fill_n 1..128
#option halves
#option normed  // heads of queries and keys are divided by their RMS, and multiplied by norm_q or norm_k, before they turn
#option places all | queries | caches
#require places == all || normed
#if normed && places != caches
#option norm_q_type f16 | f32
#end
#if normed && places != queries
#option norm_k_type f16 | f32
#end
#option half_size 1..512
#require lanes == 2 || half_size % 2 == 0 && !halves && !normed
#option heads 1..1024
#option kv_heads 1..1024
#option capacity 1..16777216
#option cache_type f16 | f32
#option cos_of_type f16 | f32
#option sin_of_type f16 | f32
#if places != caches
#option y_type f16 | f32
#end
#option live_slots
#option has_bias
#if has_bias
#option bias_type f16 | f32
#end
#let has_residual = 0
#let fixed = 0
#tensor sums raw vec$(lanes)<f32>
#include "quant/kernels/common/params.wgsl"
#if lanes == 4
#include "quant/kernels/common/rotated4.wgsl"
#else
#include "quant/kernels/common/rotated.wgsl"
#end
#if normed
#include "quant/kernels/common/head_norms.wgsl"
#end

fn sums_at(m: u32, n: u32) -> vec$(lanes)<f32> {
  let part_m = (params.m + $(fill_m - 1)u) / $(fill_m)u * $(fill_m)u;
  let part_n = (params.n + $(fill_n - 1)u) / $(fill_n)u * $(fill_n)u;
  let at = (m * part_n + n) / $(lanes)u;
#for s in 0..splits
  let part$s = sums[at + $(s)u * (part_m * part_n / $(lanes)u)];
#end
  var sum = part0;
#for s in 1..splits
  sum += part$s;
#end
  return sum;
}
#if normed
const threads = 64u;
var<workgroup> squares: array<f32, threads>;

fn finished(n: u32, v: vec2<f32>) -> vec2<f32> { return v * factor() + added2(n); }

@compute @workgroup_size(threads)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  const size = $(half_size * 2)u;
  const half = $(half_size)u;
  let at = flat_group(group, groups);
#if places == queries
  const first_head = 0u;
  const all_heads = $(heads)u;
#elif places == caches
  const first_head = $(heads)u;
  const all_heads = $(2 * kv_heads)u;
#else
  const first_head = 0u;
  const all_heads = $(heads + 2 * kv_heads)u;
#end
  let m = at / all_heads;
  let first = (first_head + at % all_heads) * size;
  if (m >= params.m) { return; }
  var sum = 0.0;
  for (var d = local * 2u; d < size; d += threads * 2u) {
    let v = finished(first + d, sums_at(m, first + d));
    sum += dot(v, v);
  }
  squares[local] = sum;
  workgroupBarrier();
  for (var step = threads / 2u; step > 0u; step /= 2u) {
    if (local < step) { squares[local] += squares[local + step]; }
    workgroupBarrier();
  }
  let scale = head_scale(squares[0], first);
#if halves
  for (var d = local * 2u; d < half; d += threads * 2u) {
    let n = first + d;
    let low = finished(n, sums_at(m, n)) * norm2(n) * scale;
    let high = finished(n + half, sums_at(m, n + half)) * norm2(n + half) * scale;
    place_halves(m, n, low, high, finishing(m, n));
  }
#else
  for (var d = local * 2u; d < size; d += threads * 2u) {
    let n = first + d;
    place_turned(m, n, finished(n, sums_at(m, n)) * norm2(n) * scale, finishing(m, n));
  }
#end
}
#else
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = flat_id(group, groups, local, 64u);
#if halves
  let fours = params.n / 4u;
  if (i >= params.m * fours) { return; }
  let m = i / fours;
  let n = column_of(i % fours * 2u);
  put_halves(m, n, sums_at(m, n), sums_at(m, n + $(half_size)u));
#else
  let row = params.n / $(lanes)u;
  if (i >= params.m * row) { return; }
  let m = i / row;
  let n = i % row * $(lanes)u;
  put$(lanes)(0u, m, n, sums_at(m, n));
#end
}
#end
