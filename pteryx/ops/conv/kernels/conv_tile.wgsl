// Convolution as a product of tiles in f32: per image and group y[m, n] = finish(sum over k of weight[k, m] * x_of(k, n)),
// n being positions and x_of the unfolded input, which is gathered into workgroup memory and never stored. One tile of y
// a workgroup, 4 x 4 to 8 x 8 results an invocation, 16 of k at a time; the next 16 are on their way in registers while
// these are multiplied.
// Roofline: a step of a 64 x 64 tile reads 2 * 16 * 64 elements for 2 * 16 * 64 * 64 flops, 16 flops a byte of f32 (128 x
// 128: 32), and 4 x 4 (8 x 8) products per 2 (4) vectors of workgroup memory: bound by arithmetic where there are
// workgroups enough to fill the device; `split` cuts k where there are not.
// Host guarantees: depth 1 unless x_from is rows; weight as conv_pack or conv_winograd_weight writes it; items = tiles *
// splits * batch * groups. x_from rows: kernels of 1 at stride 1 without padding, positions a multiple of 4.
#option shape small | medium | large | tall | few
#option x_from taps | channels | rows  // the order of k in weight; rows: x as it is, four positions at a time
#option buffers 1..2                   // of the operands in workgroup memory
#option unrolled 1..4                  // of k in a turn of the inner loop; software GPUs compile 1 several times as fast
#option split                          // y are sums, to be merged by conv_merge
#option weight_type f16 | f32
#option x_type f16 | f32
#require unrolled == 1 || unrolled == 4
#require buffers == 1 || shape != large || x_from != channels
#include "common/fours.wgsl"
#if x_from == rows
#tensor x raw four_$x_type
#else
#tensor x raw u32
#end
#tensor weight raw four_$weight_type
#include "conv/common/conv.wgsl"
#if split
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

#if shape == small
#let tile_m = 32
#let tile_n = 64
#let each_m = 4
#let each_n = 4
#elif shape == medium
#let tile_m = 64
#let tile_n = 64
#let each_m = 4
#let each_n = 4
#elif shape == tall
#let tile_m = 128
#let tile_n = 64
#let each_m = 8
#let each_n = 4
#elif shape == few
#let tile_m = 64
#let tile_n = 64
#let each_m = 8
#let each_n = 4
#else
#let tile_m = 128
#let tile_n = 128
#let each_m = 8
#let each_n = 8
#end
#let threads_m = tile_m / each_m
#let threads_n = tile_n / each_n
#let threads = threads_m * threads_n
#let fours_m = tile_m / 4
#let fours_n = tile_n / 4
#let loads_a = 16 * fours_m / threads
#if x_from == rows
#let loads_b = 16 * fours_n / threads
#else
#let loads_b = 16 * tile_n / threads
#let rows_b = threads / tile_n
#require rows_b % 2 == 0  // then all that an invocation loads in a step by taps begins in the same half of a word
#end

// [k][m / 4] and [k][n / 4]
var<workgroup> tile_a: array<array<vec4<f32>, $(16 * fours_m)>, $buffers>;
var<workgroup> tile_b: array<array<vec4<f32>, $(16 * fours_n)>, $buffers>;

#if x_from == channels
// Of the steps at hand and to come: offset in x, row and column of the kernel entry, 1 if there is such a term.
var<workgroup> terms: array<array<vec4<i32>, 16>, 2>;

fn term_at(k: u32) -> vec4<i32> {
  let c = k / params.kernel.w;
  let tap = k % params.kernel.w;
  let h = i32(tap / params.kernel.z * params.dilation.y);
  let w = i32(tap % params.kernel.z * params.dilation.z);
  return vec4<i32>(i32(c * params.in_size.w) + h * i32(params.in_size.z) + w, h, w,
                   select(0, 1, c < params.in_channels));
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
  let begin = part * (params.k / 16u) / params.splits;
  let end = (part + 1u) * (params.k / 16u) / params.splits;
  let thread_m = local / $(threads_n)u;
  let thread_n = local % $(threads_n)u;

  let wide_m = params.wide_out / 4u;
#for i in 0..loads_a
  let a_row$i = (local + $(i * threads)u) / $(fours_m)u;
  let a_at$i = z % params.groups * params.k * wide_m + a_row$i * wide_m +
      min(m0 / 4u + (local + $(i * threads)u) % $(fours_m)u, wide_m - 1u);
#end
#if x_from == rows
  let wide_n = positions / 4u;
#for i in 0..loads_b
  let b_row$i = (local + $(i * threads)u) / $(fours_n)u;
  let b_n$i = n0 / 4u + (local + $(i * threads)u) % $(fours_n)u;
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
#if x_from == taps
  var channel = begin * 16u % params.wide_in;
  var tap_h = begin * 16u / params.wide_in / params.kernel.z;
  var tap_w = begin * 16u / params.wide_in % params.kernel.z;
#elif x_from == channels
  if (local < 16u) { terms[begin % 2u][local % 16u] = term_at(begin * 16u + local); }
  workgroupBarrier();
#end

#for i in 0..each_m
#for j in 0..each_n / 4
  var sum$(i)_$j = vec4<f32>();
#end
#end
#for i in 0..loads_a
  var next_a$i: four_$weight_type;
#end
#for i in 0..loads_b
#if x_from == rows
  var next_b$i: four_$x_type;
#else
  var next_b$i: u32;
#end
#end
#if x_from != rows && x_type == f16
  var odd = 0u;  // of the words in next_b the upper half counts: by taps in all, by channels bit by bit
#end
  for (var step = begin; step <= end; step++) {
    if (step < end) {
#for i in 0..loads_a
      next_a$i = weight[a_at$i + step * 16u * wide_m];
#end
#if x_from == rows
#for i in 0..loads_b
      next_b$i = four_$x_type();
      if (b_n$i < wide_n && step * 16u + b_row$i < params.in_channels) {
        next_b$i = x[(z * params.in_channels + step * 16u + b_row$i) * wide_n + b_n$i];
      }
#end
#elif x_from == taps
      let h = h0 + i32(tap_h * params.dilation.y);
      let w = w0 + i32(tap_w * params.dilation.z);
      let there = inside && h >= 0 && h < i32(params.in_size.y) && w >= 0 && w < i32(params.in_size.z);
      let at = first + tap_h * params.dilation.y * params.in_size.z + tap_w * params.dilation.z +
          (channel + k_in) * plane;
#if x_type == f16
      odd = at % 2u;
#end
#for i in 0..loads_b
      next_b$i = 0u;
      if (there && channel + k_in + $(i * rows_b)u < params.in_channels) {
#if x_type == f16
        next_b$i = x[at / 2u + $(i * rows_b / 2)u * plane];
#else
        next_b$i = x[at + $(i * rows_b)u * plane];
#end
      }
#end
      channel += 16u;
      if (channel >= params.wide_in) {
        channel = 0u;
        tap_w += 1u;
        if (tap_w == params.kernel.z) {
          tap_w = 0u;
          tap_h += 1u;
        }
      }
#else
#if x_type == f16
      odd = 0u;
#end
#for i in 0..loads_b
      {
        let term = terms[step % 2u][k_in + $(i * rows_b)u];
        let h = h0 + term.y;
        let w = w0 + term.z;
        let at = first + u32(term.x);
#if x_type == f16
        odd |= (at % 2u) << $(i)u;
#end
        next_b$i = 0u;
        if (inside && term.w != 0 && h >= 0 && h < i32(params.in_size.y) && w >= 0 && w < i32(params.in_size.z)) {
#if x_type == f16
          next_b$i = x[at / 2u];
#else
          next_b$i = x[at];
#end
        }
      }
#end
      if (local < 16u) { terms[(step + 1u) % 2u][local % 16u] = term_at((step + 1u) * 16u + local); }
#end
    }
    if (step > begin) {
      for (var k = 0u; k < 16u; k += $(unrolled)u) {
#for u in 0..unrolled
        {
#for i in 0..each_m / 4
          let a$i = tile_a[(step + 1u) % $(buffers)u][(k + $(u)u) * $(fours_m)u + thread_m + $(i * threads_m)u];
#end
#for j in 0..each_n / 4
          let b$j = tile_b[(step + 1u) % $(buffers)u][(k + $(u)u) * $(fours_n)u + thread_n + $(j * threads_n)u];
#end
#for i in 0..each_m
#for j in 0..each_n / 4
          sum$(i)_$j = fma(vec4<f32>(a$(i / 4)[$(i % 4)]), b$j, sum$(i)_$j);
#end
#end
        }
#end
      }
    }
#if buffers == 1
    workgroupBarrier();
#end
    if (step < end) {
#for i in 0..loads_a
      tile_a[step % $(buffers)u][local + $(i * threads)u] = widen_$(weight_type)(next_a$i);
#end
#for i in 0..loads_b
#if x_from == rows
      tile_b[step % $(buffers)u][local + $(i * threads)u] = widen_$(x_type)(next_b$i);
#else
#if x_type == f32
      let b$i = bitcast<f32>(next_b$i);
#elif x_from == taps
      let b$i = unpack2x16float(next_b$i >> (odd * 16u)).x;
#else
      let b$i = unpack2x16float(next_b$i >> ((odd >> $(i)u) % 2u * 16u)).x;
#end
      tile_b[step % $(buffers)u][(k_in + $(i * rows_b)u) * $(fours_n)u + n_in / 4u][n_in % 4u] = b$i;
#end
#end
    }
    workgroupBarrier();
  }

#if split
  let tiles = params.items / params.splits;
  let to = (part * tiles + (z * tiles_m + at_m) * tiles_n + at_n) * $(tile_m * fours_n)u;
#end
#for i in 0..each_m
  {
    let m = ($(i / 4 * threads_m)u + thread_m) * 4u + $(i % 4)u;
#if !split
    if (m0 + m < params.out_channels) {
      let row = z * params.out_channels + m0 + m;
      let channel_m = row % (params.groups * params.out_channels);
#for j in 0..each_n / 4
      let column$j = n0 + ($(j * threads_n)u + thread_n) * 4u;
      if (column$j < positions) { put(row * positions + column$j, min(4u, positions - column$j), channel_m, sum$(i)_$j); }
#end
    }
#else
#for j in 0..each_n / 4
    y[to + m * $(fours_n)u + $(j * threads_n)u + thread_n] = sum$(i)_$j;
#end
#end
  }
#end
}
