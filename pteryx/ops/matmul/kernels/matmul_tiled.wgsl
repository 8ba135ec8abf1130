// y[batch, m, n] = epilogue(sum over k of a[batch, m, k] * b[batch, k, n]).
// A team of `threads_m` x `threads_n` invocations makes a tile of y, `thread_m` x `thread_n` results each, from tiles of a
// and b in workgroup memory, 16 of k at a time; the next tiles are on their way while these are multiplied. The `teams` of
// a workgroup make the same tile from different k and add up their sums at the end: a processor that has one workgroup is
// as busy as with several, and nothing is left to be merged.
// 4 x 4 (tile 64 x 64, 8 KiB): 2 operations per byte from workgroup memory, 16 per byte of a and b.
// 8 x 8 (tile 128 x 128, 16 KiB, or 64 x 128, 12 KiB): 4 and 32 (21), near the balance of arithmetic and workgroup memory
// on a large GPU. 5 x 8 (40 x 128): 3.1 and 15.
// k may be cut into `splits` parts of `chunk` (a multiple of 16 * teams), which count as batches: batch + part * batches.
// Host guarantees: a workgroup of that many invocations and its memory fit the device.
#option thread_m 4..8
#option thread_n 4 | 8
#option threads_m 8 | 16
#option threads_n 8 | 12 | 16
#option teams 1..6
#option across 4 | 16  // of 32 neighbouring invocations those that have the same rows
#require threads_n % across == 0
#require threads_m == 8 || teams == 1
#option a_type f16 | f32
#option b_type f16 | f32
#option y_type f16 | f32
#option a_fours
#option b_load elements | fours
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
#option along_k
#option finished
#include "matmul/common/matmul.wgsl"
#include "matmul/common/a.wgsl"
#include "matmul/common/b.wgsl"
#include "matmul/common/put.wgsl"

#include "common/chain.wgsl"

#let tile_m = thread_m * threads_m
#let tile_n = thread_n * threads_n
#let threads = threads_m * threads_n
#let fours_a = tile_m * 4  // of a tile
#let fours_b = tile_n * 4
#let team_fours = fours_a + fours_b
#let quads = thread_n / 4  // of columns of an invocation
#let loads_a = (fours_a + threads - 1) / threads
#let loads_b = fours_b / threads
#let depth = 16 * teams
#let blocks_n = threads_n / across  // of 32 invocations

const wg_size: u32 = $(threads * teams)u;

// Each team's. Four of k in a vec4. a: [tile_m][4]; b: [tile_n][4] where along_k, else four of n in [16][tile_n / 4].
var<workgroup> tiles: array<vec4<f32>, $(team_fours * teams)>;

// Rows of four are shuffled so that neighbours read different banks.
fn slot(row: u32, quad: u32) -> u32 { return row * 4u + (quad ^ ((row >> 1u) & 3u)); }
// Where a column of b is kept: an invocation owns pairs of neighbours, its neighbour the next pair.
fn column_slot(n: u32) -> u32 {
  let pair = n % $(2 * threads_n)u;
  return n - pair + (pair & 1u) * $(threads_n)u + pair / 2u;
}

fn fetch_b_tile(base: u32, first_n: u32, first_k: u32, e: u32) -> b_four {
#if along_k
  return fetch_b4(base, first_n + e / 4u, first_k + e % 4u * 4u);
#else
  return fetch_b4(base, first_k + e / $(tile_n / 4)u, first_n + e % $(tile_n / 4)u * 4u);
#end
}
#if along_k
fn b_slot(e: u32) -> u32 { return slot(column_slot(e / 4u), e % 4u); }
#else
fn b_slot(e: u32) -> u32 { return e; }
#end

// The results of invocation x in the h-th four of its columns.
fn put4(part: u32, m: u32, first_n: u32, x: u32, h: u32, v: vec4<f32>) {
#if along_k
  let n = first_n + h * $(4 * threads_n)u + x * 2u;
  put2(part, m, n, v.xy);
  put2(part, m, n + $(2 * threads_n)u, v.zw);
#else
  let n = first_n + h * $(4 * threads_n)u + x * 4u;
  put2(part, m, n, v.xy);
  put2(part, m, n + 2u, v.zw);
#end
}

@compute @workgroup_size(wg_size)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) invocation: u32) {
  let tiles_m = (params.m + $(tile_m - 1)u) / $(tile_m)u;
  let tiles_n = (params.n + $(tile_n - 1)u) / $(tile_n)u;
  let at = flat_group(group, groups);
  let part = at / tiles_m / tiles_n;
  if (part >= params.batches * params.splits) { return; }
  let batch = part % params.batches;
  let first_m = at % tiles_m * $(tile_m)u;
  let first_n = at / tiles_m % tiles_n * $(tile_n)u;
  let a_base = batch * params.a_batch;
  let b_base = batch * params.b_batch;
  let start_k = part / params.batches * params.chunk;
  let end_k = min(start_k + params.chunk, params.k);
#if teams == 1
  let local = invocation;
  let team = 0u;
#else
  let local = invocation % $(threads)u;
  let team = invocation / $(threads)u;
#end
  let tile_a = team * $(team_fours)u;
  let tile_b = tile_a + $(fours_a)u;
  let x = local / 32u % $(blocks_n)u * $(across)u + local % $(across)u;
  let y_row = local / $(32 * blocks_n)u * $(32 / across)u + local % 32u / $(across)u;

  var sums: array<vec4<f32>, $(thread_m * quads)>;
  for (var i = 0u; i < $(thread_m * quads)u; i++) { sums[i] = vec4<f32>(0.0); }
  var next_a: array<a_four, $loads_a>;
  var next_b: array<b_four, $loads_b>;
  for (var k = start_k; k < end_k + $(depth)u; k += $(depth)u) {
    if (k < end_k) {
      let team_k = k + team * 16u;
      for (var i = 0u; i < $(loads_a)u; i++) {
        let e = local + i * $(threads)u;
#if fours_a % threads != 0
        if (e < $(fours_a)u) { next_a[i] = fetch_a4(a_base, first_m + e / 4u, team_k + e % 4u * 4u); }
#else
        next_a[i] = fetch_a4(a_base, first_m + e / 4u, team_k + e % 4u * 4u);
#end
      }
      for (var i = 0u; i < $(loads_b)u; i++) {
        next_b[i] = fetch_b_tile(b_base, first_n, team_k, local + i * $(threads)u);
      }
    }
    if (k > start_k) {
      for (var quad = 0u; quad < 4u; quad++) {
        var v: array<vec4<f32>, $thread_m>;
        for (var i = 0u; i < $(thread_m)u; i++) { v[i] = tiles[tile_a + slot(y_row + i * $(threads_m)u, quad)]; }
        for (var h = 0u; h < $(quads)u; h++) {
#if along_k
          let column = h * $(4 * threads_n)u + x;
          let b0 = tiles[tile_b + slot(column, quad)];
          let b1 = tiles[tile_b + slot(column + $(threads_n)u, quad)];
          let b2 = tiles[tile_b + slot(column + $(2 * threads_n)u, quad)];
          let b3 = tiles[tile_b + slot(column + $(3 * threads_n)u, quad)];
          for (var i = 0u; i < $(thread_m)u; i++) {
            let sum = sums[i * $(quads)u + h];
            sums[i * $(quads)u + h] = vec4<f32>(chain(v[i], b0, sum.x), chain(v[i], b1, sum.y), chain(v[i], b2, sum.z),
                chain(v[i], b3, sum.w));
          }
#else
          let b_at = tile_b + quad * $(tile_n)u + h * $(threads_n)u + x;
          let b0 = tiles[b_at];
          let b1 = tiles[b_at + $(tile_n / 4)u];
          let b2 = tiles[b_at + $(tile_n / 2)u];
          let b3 = tiles[b_at + $(tile_n / 4 * 3)u];
          for (var i = 0u; i < $(thread_m)u; i++) {
            let sum = fma(vec4<f32>(v[i].y), b1, fma(vec4<f32>(v[i].x), b0, sums[i * $(quads)u + h]));
            sums[i * $(quads)u + h] = fma(vec4<f32>(v[i].w), b3, fma(vec4<f32>(v[i].z), b2, sum));
          }
#end
        }
      }
    }
    workgroupBarrier();
    for (var i = 0u; i < $(loads_a)u; i++) {
      let e = local + i * $(threads)u;
#if fours_a % threads != 0
      if (e < $(fours_a)u) { tiles[tile_a + slot(e / 4u, e % 4u)] = widen_a4(next_a[i]); }
#else
      tiles[tile_a + slot(e / 4u, e % 4u)] = widen_a4(next_a[i]);
#end
    }
    for (var i = 0u; i < $(loads_b)u; i++) { tiles[tile_b + b_slot(local + i * $(threads)u)] = widen_b4(next_b[i]); }
    workgroupBarrier();
  }

#if teams == 1 && activation == none
  for (var i = 0u; i < $(thread_m)u; i++) {
    for (var h = 0u; h < $(quads)u; h++) {
      put4(part, first_m + y_row + i * $(threads_m)u, first_n, x, h, sums[i * $(quads)u + h]);
    }
  }
#else
  // By way of workgroup memory, as many as fit at a time: each team finishes some of all teams' sums. Sums that a loop
  // with an activation in it indexes would be kept in memory by drivers that do not unroll it.
#let most = team_fours / threads
#let count = thread_m * quads
#for first in 0..(count + most - 1) / most
#for i in 0..most
#if first * most + i < count
  tiles[(team * $(most)u + $(i)u) * $(threads)u + local] = sums[$(first * most + i)];
#end
#end
#if teams > 1
  workgroupBarrier();
#end
  for (var i = team; i < $(most)u; i += $(teams)u) {
    let at_sum = $(first * most)u + i;
    if (at_sum >= $(count)u) { break; }
    var sum = tiles[i * $(threads)u + local];
    for (var t = 1u; t < $(teams)u; t++) { sum += tiles[(t * $(most)u + i) * $(threads)u + local]; }
    put4(part, first_m + y_row + at_sum / $(quads)u * $(threads_m)u, first_n, x, at_sum % $(quads)u, sum);
  }
#if teams > 1
  workgroupBarrier();
#end
#end
#end
}
