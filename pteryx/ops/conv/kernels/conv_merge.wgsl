// y[z, m, n] = finish(sum over s of sums[s, z, m, n]): the end of a product whose terms were split. Sums lie in the tiles
// that their workgroups had: [splits, batch * groups, tiles of m, tiles of n, tile_m, tile_n]. One invocation per four
// results, or per word of y where rows share words. Bytes: 4 * splits + the size of y per result.
// Host guarantees: items = batch * channels * ceil(positions / 4), or the number of results where rows share words.
#option has_bias
#option activation none | silu | hardswish
#option has_norm
#option has_residual 0..2
#option has_lo
#option has_hi
#option y_rows fours | pairs | ones | any
#option y_type f16 | f32
#tensor sums raw vec4<f32>
#if has_bias
#tensor bias read f16 | f32
#end
#if has_norm
#tensor norm read f16 | f32
#end
#if has_residual
#tensor residual read f16 | f32
#end
#include "conv/common/conv.wgsl"
#include "conv/common/results.wgsl"
#if y_rows == any
#if y_type == f16
#let lanes = 2
#else
#let lanes = 1
#end
#end

// Where the first of the sums of (row, n) is, in floats.
fn sum_at(row: u32, n: u32) -> u32 {
  let m = row % params.out_channels;
  let z = row / params.out_channels;
  let tiles_m = (params.out_channels + params.tile_m - 1u) / params.tile_m;
  let tiles_n = (params.out_size.w + params.tile_n - 1u) / params.tile_n;
  let tile = (z * tiles_m + m / params.tile_m) * tiles_n + n / params.tile_n;
  return (tile * params.tile_m + m % params.tile_m) * params.tile_n + n % params.tile_n;
}
// Floats of one split of `images` products.
fn split_size(images: u32) -> u32 {
  let tiles_m = (params.out_channels + params.tile_m - 1u) / params.tile_m;
  let tiles_n = (params.out_size.w + params.tile_n - 1u) / params.tile_n;
  return images * tiles_m * tiles_n * params.tile_m * params.tile_n;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let item = flat_id(group, groups, local, 64u);
  let positions = params.out_size.w;
#if y_rows == any
  if (item * y_lanes >= params.items) { return; }
  let size = split_size(params.items / positions / params.out_channels);
  // The sums of all lanes in one walk over the splits; a lane behind the last repeats it.
#for lane in 0..lanes
  let i$lane = min(item * y_lanes + $(lane)u, params.items - 1u);
  let row$lane = i$lane / positions;
  var at$lane = sum_at(row$lane, i$lane % positions);
  var sum$lane = 0.0;
#end
  for (var s = 0u; s < params.splits; s++) {
#for lane in 0..lanes
    sum$lane += sums[at$lane / 4u][at$lane % 4u];
    at$lane += size;
#end
  }
  var word = 0u;
#for lane in 0..lanes
  if (item * y_lanes + $(lane)u < params.items) {
    let v = finish(i$lane, 1u, row$lane % (params.groups * params.out_channels), vec4<f32>(sum$lane)).x;
    word |= encode_y($(lane)u, v);
  }
#end
  y[item] = word;
#else
  if (item >= params.items) { return; }
  let blocks = (positions + 3u) / 4u;
  let n = item % blocks * 4u;
  let row = item / blocks;
  let size = split_size(params.items / blocks / params.out_channels) / 4u;
  var at = sum_at(row, n) / 4u;
  var sum = vec4<f32>();
  for (var s = 0u; s < params.splits; s++) {
    sum += sums[at];
    at += size;
  }
  put(row * positions + n, min(4u, positions - n), row % (params.groups * params.out_channels), sum);
#end
}
