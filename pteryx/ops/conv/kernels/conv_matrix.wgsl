// Convolution as a product of tiles with subgroup matrices, f16 operands and f32 sums: per image and group y[m, n] =
// finish(sum over k of weight[m, k] * x_of(k, n)), n being positions and x_of the unfolded input, which is gathered into
// workgroup memory and never stored; from `halves` a load has eight channels of a position, ready to be multiplied. One
// tile of y a workgroup, groups_m x groups_n subgroups of 32, each with the sums of its part in matrices of 16 x 16; the
// next operands are on their way in registers while these are multiplied.
// The sums have names: compilers keep an array of matrices in memory, which costs most of the speed. Matrices are loaded at
// offsets and strides that are constant, from arrays of their subgroup's own.
// Roofline: a step of 128 x 128 x 64 is 2 * 128 * 128 * 64 flops on 16 KiB of weights and 32 KiB of f32 x, from the cache.
// What is gathered costs an address, a bound and a conversion for each element, more than its products: 95 of the 250
// TFLOP/s that halves allow.
// Host guarantees: depth 1; subgroups of 32; weight as conv_pack_halves writes it; items = tiles * splits * batch * groups;
// halves as conv_halves writes them, with in_size what it has made and no padding.
#option shape square | shallow | oblong | large | deep | whole | tall | half
#option x_from taps | channels | halves  // the order of k in weight; halves: taps
#option split 0..2              // y are sums, to be merged by conv_merge: 1: stored as matrices, 2: in vectors
#enable f16
#enable subgroups
#enable subgroup_matrix
#if x_from == halves
#tensor x raw vec4<u32>
#else
#option x_type f16 | f32
#tensor x raw $x_type
#end
#tensor weight raw vec4<u32>
#include "conv/common/conv.wgsl"
#if split == 1
#tensor y raw_write f32
#elif split == 2
#tensor y raw_write vec4<f32>
#else
#option has_bias
#option activation none | silu | hardswish
#option has_norm
#option has_residual 0..2
#option has_lo
#option has_hi
#option y_rows fours | pairs | ones
#option y_type f16 | f32
#if has_bias
#tensor bias read f16 | f32
#end
#if has_norm
#tensor norm read f16 | f32
#end
#if has_residual
#tensor residual read f16 | f32
#end
#include "conv/common/results.wgsl"
#end

#let groups_m = 2
#if shape == square
#let tile_m = 64
#let tile_n = 64
#let depth = 64
#let groups_n = 2
#elif shape == shallow
#let tile_m = 64
#let tile_n = 64
#let depth = 32
#let groups_n = 2
#elif shape == oblong
#let tile_m = 64
#let tile_n = 128
#let depth = 32
#let groups_n = 2
#elif shape == large
#let tile_m = 128
#let tile_n = 128
#let depth = 32
#let groups_n = 2
#elif shape == deep
#let tile_m = 128
#let tile_n = 128
#let depth = 64
#let groups_n = 4
#elif shape == whole
#let tile_m = 128
#let tile_n = 128
#let depth = 64
#let groups_n = 2
#elif shape == tall
#let tile_m = 160
#let tile_n = 128
#let depth = 32
#let groups_n = 2
#else
#let tile_m = 64
#let tile_n = 128
#let depth = 64
#let groups_n = 2
#end
#let threads = groups_m * groups_n * 32
#let side_m = tile_m / groups_m  // of a subgroup
#let side_n = tile_n / groups_n
#let eights = depth / 8
#let wide = eights + 1           // one more than a row has, so that rows start in different banks
#let loads_a = tile_m * eights / threads
#let loads_b = tile_n * eights / threads
#let rows_b = threads / tile_n

// Eights of k: offsets and strides of matrices count them.
var<workgroup> tile_a: array<array<vec4<u32>, $(side_m * wide)>, $groups_m>;  // [m][k / 8]
var<workgroup> tile_b: array<array<vec4<u32>, $(side_n * wide)>, $groups_n>;  // [n][k / 8]
#if split != 1
var<workgroup> tile_sums: array<array<f32, 256>, $(groups_m * groups_n)>;        // a matrix of each subgroup
#end

#if x_from != halves
#include "conv/common/halves.wgsl"
#end
#if x_from == channels
// Of the steps at hand and to come: offset in x, row and column of the kernel entry, 1 if there is such a term.
var<workgroup> terms: array<array<vec4<i32>, $depth>, 2>;

fn term_at(k: u32) -> vec4<i32> {
  let c = k / params.kernel.w;
  let tap = k % params.kernel.w;
  let h = i32(tap / params.kernel.z * params.dilation.y);
  let w = i32(tap % params.kernel.z * params.dilation.z);
  return vec4<i32>(i32(c * params.in_size.w) + h * i32(params.in_size.z) + w, h, w,
                   select(0, 1, c < params.in_channels));
}

fn x_at(first: u32, h0: i32, w0: i32, inside: bool, term: vec4<i32>) -> $x_type {
  let h = h0 + term.y;
  let w = w0 + term.z;
  if (!inside || term.w == 0 || h < 0 || h >= i32(params.in_size.y) || w < 0 || w >= i32(params.in_size.z)) {
    return $(x_type)();
  }
  return x[first + u32(term.x)];
}
#elif x_from == taps
fn x_at(at: u32, there: bool) -> $x_type {
  if (!there) { return $(x_type)(); }
  return x[at];
}
#end

@compute @workgroup_size($threads)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = flat_group(group, groups);
  if (index >= params.items) { return; }
  // Rows run fastest, so that neighbouring workgroups read the same columns of x.
  let positions = params.out_size.w;
  let tiles_m = (params.out_channels + $(tile_m - 1)u) / $(tile_m)u;
  let tiles_n = (positions + $(tile_n - 1)u) / $(tile_n)u;
  let at_m = index % tiles_m;
  let at_n = index / tiles_m % tiles_n;
  let part = index / tiles_m / tiles_n % params.splits;
  let z = index / tiles_m / tiles_n / params.splits;
  let m0 = at_m * $(tile_m)u;
  let n0 = at_n * $(tile_n)u;
  let begin = part * (params.k / $(depth)u) / params.splits;
  let end = (part + 1u) * (params.k / $(depth)u) / params.splits;
  let owner = local / 32u;
  let lane = local % 32u;
  let own_m = owner % $(groups_m)u;
  let own_n = owner / $(groups_m)u;

  // Rows beyond the last are the last; their sums go nowhere.
#for i in 0..loads_a
  let a_at$i = (z % params.groups * params.out_channels +
                min(m0 + (local + $(i * threads)u) / $(eights)u, params.out_channels - 1u)) * (params.k / 8u) +
      (local + $(i * threads)u) % $(eights)u;
#end
#if x_from == halves
  // Where the first taps of the columns lie that this invocation loads; those beyond the last are the last.
  let row_x = params.wide_in / 8u;
#for i in 0..loads_b
  let column$i = min(n0 + (local + $(i * threads)u) / $(eights)u, positions - 1u);
  let b_at$i = (z * params.in_size.w + column$i / params.out_size.z * params.stride.y * params.in_size.z +
                column$i % params.out_size.z * params.stride.z) * row_x + (local + $(i * threads)u) % $(eights)u;
#end
#else
  // The column of x that this invocation loads: where its first tap lies.
  let n_in = local % $(tile_n)u;
  let k_in = local / $(tile_n)u;
  let inside = n0 + n_in < positions;
  let h0 = i32((n0 + n_in) / params.out_size.z * params.stride.y) - i32(params.padding.y);
  let w0 = i32((n0 + n_in) % params.out_size.z * params.stride.z) - i32(params.padding.z);
  let plane = params.in_size.w;
  let first = u32(i32(z * params.in_channels * plane) + h0 * i32(params.in_size.z) + w0);
#end
#if x_from != channels
  var channel = begin * $(depth)u % params.wide_in;
  var tap_h = begin * $(depth)u / params.wide_in / params.kernel.z;
  var tap_w = begin * $(depth)u / params.wide_in % params.kernel.z;
#else
  if (local < $(depth)u) { terms[begin % 2u][local % $(depth)u] = term_at(begin * $(depth)u + local); }
  workgroupBarrier();
#end

#for i in 0..side_m / 16
#for j in 0..side_n / 16
  var sum$(i)_$j = subgroup_matrix_result<f32, 16, 16>();
#end
#end
#for i in 0..loads_a
  var next_a$i: vec4<u32>;
#end
#for i in 0..loads_b
#if x_from == halves
  var next_b$i: vec4<u32>;
#else
  var low$i: vec4<$x_type>;
  var high$i: vec4<$x_type>;
#end
#end
  for (var step = begin; step <= end; step++) {
    if (step < end) {
#for i in 0..loads_a
      next_a$i = weight[a_at$i + step * $(eights)u];
#end
#if x_from == halves
      let to_tap = (tap_h * params.dilation.y * params.in_size.z + tap_w * params.dilation.z) * row_x + channel / 8u;
#for i in 0..loads_b
      next_b$i = x[b_at$i + to_tap];
#end
#elif x_from == taps
      let h = h0 + i32(tap_h * params.dilation.y);
      let w = w0 + i32(tap_w * params.dilation.z);
      let there = inside && h >= 0 && h < i32(params.in_size.y) && w >= 0 && w < i32(params.in_size.z);
      let c = channel + k_in * 8u;
      let at = first + tap_h * params.dilation.y * params.in_size.z + tap_w * params.dilation.z + c * plane;
#for i in 0..loads_b
#for e in 0..4
      low$i[$e] = x_at(at + $(i * rows_b * 8 + e)u * plane, there && c + $(i * rows_b * 8 + e)u < params.in_channels);
      high$i[$e] = x_at(at + $(i * rows_b * 8 + e + 4)u * plane, there && c + $(i * rows_b * 8 + e + 4)u < params.in_channels);
#end
#end
#end
#if x_from != channels
      channel += $(depth)u;
      if (channel >= params.wide_in) {
        channel = 0u;
        tap_w += 1u;
        if (tap_w == params.kernel.z) {
          tap_w = 0u;
          tap_h += 1u;
        }
      }
#else
#for i in 0..loads_b
#for e in 0..4
      low$i[$e] = x_at(first, h0, w0, inside, terms[step % 2u][(k_in + $(i * rows_b)u) * 8u + $(e)u]);
      high$i[$e] = x_at(first, h0, w0, inside, terms[step % 2u][(k_in + $(i * rows_b)u) * 8u + $(e + 4)u]);
#end
#end
      if (local < $(depth)u) {
        terms[(step + 1u) % 2u][local % $(depth)u] = term_at((step + 1u) * $(depth)u + local);
      }
#end
    }
    if (step > begin) {
#for s in 0..depth / 16
      {
#for i in 0..side_m / 16
        let left$i = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(
            &tile_a[own_m], $(i * 16 * wide + 2 * s)u, $(wide)u);
#end
#for j in 0..side_n / 16
        let right$j = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, col_major>(
            &tile_b[own_n], $(j * 16 * wide + 2 * s)u, $(wide)u);
#for i in 0..side_m / 16
        sum$(i)_$j = subgroupMatrixMultiplyAccumulate(left$i, right$j, sum$(i)_$j);
#end
#end
      }
#end
    }
    workgroupBarrier();
    if (step < end) {
#for i in 0..loads_a
      tile_a[(local + $(i * threads)u) / $(eights * side_m)u][
          (local + $(i * threads)u) / $(eights)u % $(side_m)u * $(wide)u + (local + $(i * threads)u) % $(eights)u] = next_a$i;
#end
#for i in 0..loads_b
#if x_from == halves
      tile_b[(local + $(i * threads)u) / $(eights * side_n)u][
          (local + $(i * threads)u) / $(eights)u % $(side_n)u * $(wide)u + (local + $(i * threads)u) % $(eights)u] = next_b$i;
#else
      tile_b[n_in / $(side_n)u][n_in % $(side_n)u * $(wide)u + k_in + $(i * rows_b)u] = halves(low$i, high$i);
#end
#end
    }
    workgroupBarrier();
  }

#if split
  let tiles = params.items / params.splits;
  let to = ((part * tiles + (z * tiles_m + at_m) * tiles_n + at_n) * $(tile_m)u + own_m * $(side_m)u) *
      $(tile_n)u + own_n * $(side_n)u;
#end
#if split == 1
#for i in 0..side_m / 16
#for j in 0..side_n / 16
  subgroupMatrixStore<row_major>(&y, to + $(i * 16 * tile_n + j * 16)u, sum$(i)_$j, $(tile_n)u);
#end
#end
#else
  // Matrices have no elements to be read: they go through workgroup memory, one of each subgroup at a time.
  for (var turn = 0u; turn < $(side_m * side_n / 256)u; turn++) {
    switch (turn) {
#for i in 0..side_m / 16
#for j in 0..side_n / 16
      case $(i * (side_n / 16) + j)u: { subgroupMatrixStore<row_major>(&tile_sums[owner], 0u, sum$(i)_$j, 16u); }
#end
#end
      default: {}
    }
    workgroupBarrier();
    for (var e = lane; e < 64u; e += 32u) {
      let sum = vec4<f32>(
#for q in 0..4
          tile_sums[owner][e % 64u * 4u + $(q)u],
#end
      );
#if split
      y[(to + (turn / $(side_n / 16)u * 16u + e / 4u) * $(tile_n)u + turn % $(side_n / 16)u * 16u) / 4u + e % 4u] = sum;
#else
      let m = m0 + own_m * $(side_m)u + turn / $(side_n / 16)u * 16u + e / 4u;
      let n = n0 + own_n * $(side_n)u + turn % $(side_n / 16)u * 16u + e % 4u * 4u;
      if (m < params.out_channels && n < positions) {
        let row = z * params.out_channels + m;
        put(row * positions + n, min(4u, positions - n), row % (params.groups * params.out_channels), sum);
      }
#end
    }
    workgroupBarrier();
  }
#end
}
