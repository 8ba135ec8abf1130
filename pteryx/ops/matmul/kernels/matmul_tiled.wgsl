// y[batch, m, n] = epilogue(sum over k of a[batch, m, k] * b[batch, k, n]).
// A workgroup of `threads_m` x 16 invocations makes a tile of y, `thread` x `thread` results each, from tiles of a and b
// in workgroup memory, 16 of k at a time; the next tiles are on their way while these are multiplied.
// 4 x 4 (tile 64 x 64, 8 KiB): 2 operations per byte from workgroup memory, 16 per byte of a and b.
// 8 x 8 (tile 128 x 128, 16 KiB, or 64 x 128, 12 KiB): 4 and 32 (21), near the balance of arithmetic and workgroup memory
// on a large GPU.
// k may be cut into `splits` parts of `chunk` (a multiple of 16), which count as batches: batch + part * batches.
// Host guarantees: a workgroup of that many invocations and its memory fit the device.
#option thread_fours 1..2
#option threads_m 8 | 16
#require threads_m == 16 || thread_fours == 2
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

const thread: u32 = $(thread_fours * 4)u;
const threads: u32 = $(threads_m * 16)u;

const tile_m: u32 = thread * $(threads_m)u;
const tile_n: u32 = thread * 16u;
const quads: u32 = thread / 4u;  // of columns of an invocation; loads of a
const loads_b: u32 = tile_n * 4u / threads;

// Four of k in a vec4. a: [tile_m][4]; b: [tile_n][4] where along_k, else four of n in [16][tile_n / 4].
var<workgroup> tile_a: array<vec4<f32>, tile_m * 4u>;
var<workgroup> tile_b: array<vec4<f32>, tile_n * 4u>;

// Rows of four are shuffled so that neighbours read different banks.
fn slot(row: u32, quad: u32) -> u32 { return row * 4u + (quad ^ ((row >> 1u) & 3u)); }
// Where a column of b is kept: an invocation owns pairs of neighbours, its neighbour the next pair.
fn column_slot(n: u32) -> u32 { return (n & ~31u) | ((n & 1u) << 4u) | ((n & 31u) >> 1u); }

fn load_b_tile(base: u32, first_n: u32, first_k: u32, e: u32) -> vec4<f32> {
#if along_k
  return b4(base, first_n + e / 4u, first_k + e % 4u * 4u);
#else
  return b4(base, first_k + e / (tile_n / 4u), first_n + e % (tile_n / 4u) * 4u);
#end
}
#if along_k
fn b_slot(e: u32) -> u32 { return slot(column_slot(e / 4u), e % 4u); }
#else
fn b_slot(e: u32) -> u32 { return e; }
#end

@compute @workgroup_size(threads)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let tiles_m = (params.m + tile_m - 1u) / tile_m;
  let tiles_n = (params.n + tile_n - 1u) / tile_n;
  let at = flat_group(group, groups);
  let part = at / tiles_m / tiles_n;
  if (part >= params.batches * params.splits) { return; }
  let batch = part % params.batches;
  let first_m = at % tiles_m * tile_m;
  let first_n = at / tiles_m % tiles_n * tile_n;
  let a_base = batch * params.a_batch;
  let b_base = batch * params.b_batch;
  let start_k = part / params.batches * params.chunk;
  let end_k = min(start_k + params.chunk, params.k);
  let x = local % 16u;
  let y_row = local / 16u * thread;

  var sums: array<vec4<f32>, thread * quads>;
  for (var i = 0u; i < thread * quads; i++) { sums[i] = vec4<f32>(0.0); }
  var next_a: array<vec4<f32>, quads>;
  var next_b: array<vec4<f32>, loads_b>;
  for (var k = start_k; k < end_k + 16u; k += 16u) {
    if (k < end_k) {
      for (var i = 0u; i < quads; i++) {
        let e = local + i * threads;
        next_a[i] = a4(a_base, first_m + e / 4u, k + e % 4u * 4u);
      }
      for (var i = 0u; i < loads_b; i++) { next_b[i] = load_b_tile(b_base, first_n, k, local + i * threads); }
    }
    if (k > start_k) {
      for (var quad = 0u; quad < 4u; quad++) {
        var v: array<vec4<f32>, thread>;
        for (var i = 0u; i < thread; i++) { v[i] = tile_a[slot(y_row + i, quad)]; }
        for (var h = 0u; h < quads; h++) {
#if along_k
          let b0 = tile_b[slot(h * 64u + x, quad)];
          let b1 = tile_b[slot(h * 64u + 16u + x, quad)];
          let b2 = tile_b[slot(h * 64u + 32u + x, quad)];
          let b3 = tile_b[slot(h * 64u + 48u + x, quad)];
          for (var i = 0u; i < thread; i++) {
            sums[i * quads + h] += vec4<f32>(dot(v[i], b0), dot(v[i], b1), dot(v[i], b2), dot(v[i], b3));
          }
#else
          let at = quad * tile_n + h * 16u + x;
          let b0 = tile_b[at];
          let b1 = tile_b[at + tile_n / 4u];
          let b2 = tile_b[at + tile_n / 2u];
          let b3 = tile_b[at + tile_n / 4u * 3u];
          for (var i = 0u; i < thread; i++) {
            sums[i * quads + h] += v[i].x * b0 + v[i].y * b1 + v[i].z * b2 + v[i].w * b3;
          }
#end
        }
      }
    }
    workgroupBarrier();
    for (var i = 0u; i < quads; i++) {
      let e = local + i * threads;
      tile_a[slot(e / 4u, e % 4u)] = next_a[i];
    }
    for (var i = 0u; i < loads_b; i++) { tile_b[b_slot(local + i * threads)] = next_b[i]; }
    workgroupBarrier();
  }

  for (var i = 0u; i < thread; i++) {
    let m = first_m + y_row + i;
    for (var h = 0u; h < quads; h++) {
      let total = sums[i * quads + h];
#if along_k
      let n = first_n + h * 64u + x * 2u;
      put2(part, m, n, total.xy);
      put2(part, m, n + 32u, total.zw);
#else
      let n = first_n + h * 64u + x * 4u;
      put2(part, m, n, total.xy);
      put2(part, m, n + 2u, total.zw);
#end
    }
  }
}
