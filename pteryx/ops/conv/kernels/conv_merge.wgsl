// y[z, m, n] = finish(sum over s of sums[s, z, m, n]): the end of a product whose terms were split. Sums lie in the tiles
// that their workgroups had: [splits, batch * groups, tiles of m, tiles of n, tile_m, tile_n]. One invocation per four
// results. Bytes: 4 * splits + the size of y per result.
// Host guarantees: items = batch * channels * ceil(positions / 4).
#option has_bias
#option activation none | silu | hardswish
#option has_norm
#option has_residual 0..2
#option has_lo
#option has_hi
#option y_rows fours | pairs | ones
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

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let item = flat_id(group, groups, local, 64u);
  if (item >= params.items) { return; }
  let positions = params.out_size.w;
  let fours = (positions + 3u) / 4u;
  let n = item % fours * 4u;
  let row = item / fours;
  let m = row % params.out_channels;
  let z = row / params.out_channels;
  let tiles_m = (params.out_channels + params.tile_m - 1u) / params.tile_m;
  let tiles_n = (positions + params.tile_n - 1u) / params.tile_n;
  let tile = (z * tiles_m + m / params.tile_m) * tiles_n + n / params.tile_n;
  var at = ((tile * params.tile_m + m % params.tile_m) * params.tile_n + n % params.tile_n) / 4u;
  // Of one split.
  let size = params.items / fours / params.out_channels * tiles_m * tiles_n * params.tile_m * params.tile_n / 4u;
  var sum = vec4<f32>();
  for (var s = 0u; s < params.splits; s++) {
    sum += sums[at];
    at += size;
  }
  put(row * positions + n, min(4u, positions - n), row % (params.groups * params.out_channels), sum);
}
