// y[b, m, tile] = finish(transposed(A) sums[.., m, tile] A): results of what conv_tile multiplied. One invocation per
// output channel and tile, outputs x outputs results.
// Bytes per tile: 4 * side^2 read, the size of y * outputs^2 written.
// Host guarantees: y_rows is ones or pairs where outputs is 2; items = out_channels * batch * tiles.
#option outputs 2..4  // results along each side of a tile: F(2 x 2, 3 x 3) or F(4 x 4, 3 x 3)
#require outputs != 3
#option has_bias
#option activation none | silu | hardswish
#option has_norm
#option has_residual 0..2
#option has_lo
#option has_hi
#option y_rows fours | pairs | ones
#option y_type f16 | f32
#tensor sums raw f32
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
#let side = outputs + 2

alias Line = array<f32, $side>;

fn transform(d: Line) -> vec4<f32> {
#if outputs == 2
  return vec4<f32>(d[0] + d[1] + d[2], d[1] - d[2] - d[3], 0.0, 0.0);
#else
  return vec4<f32>(d[0] + d[1] + d[2] + d[3] + d[4], d[1] - d[2] + 2.0 * (d[3] - d[4]),
                   d[1] + d[2] + 4.0 * (d[3] + d[4]), d[1] - d[2] + 8.0 * (d[3] - d[4]) + d[5]);
#end
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let item = flat_id(group, groups, local, 64u);
  if (item >= params.items) { return; }
  let tiles_h = (params.out_size.y + $(outputs - 1)u) / $(outputs)u;
  let tiles_w = (params.out_size.z + $(outputs - 1)u) / $(outputs)u;
  let tiles = params.items / params.out_channels;
  let tile = item % tiles;
  let m = item / tiles;
  let wide = (tiles + 3u) / 4u * 4u;
  let at = m * wide + tile;
  let size = params.out_channels * wide;
#for w in 0..side
  let column$w = transform(Line(
#for h in 0..side
      sums[$(h * side + w)u * size + at],
#end
      ));
#end
  let h0 = tile / tiles_w % tiles_h * $(outputs)u;
  let w0 = tile % tiles_w * $(outputs)u;
  let row = (tile / tiles_w / tiles_h * params.out_channels + m) * params.out_size.y + h0;
  let count = min($(outputs)u, params.out_size.z - w0);
#for h in 0..outputs
  if (h0 + $(h)u < params.out_size.y) {
    let v = transform(Line(
#for w in 0..side
        column$w[$h],
#end
        ));
    put((row + $(h)u) * params.out_size.z + w0, count, m, v);
  }
#end
}
