// y[z, c, tile] = (B transposed(x tile) B)[z]: the input as conv_tile multiplies it. Tiles are those of all images, row by
// row, `outputs` apart, in rows of a multiple of 4. One invocation per channel and tile.
// Bytes per tile: 4 * outputs^2 read, the rest from the cache, 4 * side^2 written.
// Host guarantees: groups 1, stride and dilation 1, items = in_channels * batch * tiles.
#option outputs 2..4  // results along each side of a tile: F(2 x 2, 3 x 3) or F(4 x 4, 3 x 3)
#require outputs != 3
#tensor x read f16 | f32
#tensor y raw_write f32
#include "conv/common/conv.wgsl"
#let side = outputs + 2

alias Line = array<f32, $side>;

fn transform(d: Line) -> Line {
#if outputs == 2
  return Line(d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]);
#else
  return Line(4.0 * d[0] - 5.0 * d[2] + d[4], d[3] + d[4] - 4.0 * (d[1] + d[2]), d[4] - d[3] + 4.0 * (d[1] - d[2]),
              d[4] - d[2] + 2.0 * (d[3] - d[1]), d[4] - d[2] + 2.0 * (d[1] - d[3]), 4.0 * d[1] - 5.0 * d[3] + d[5]);
#end
}

fn x_at(row: u32, column: i32) -> f32 {
  if (column < 0 || column >= i32(params.in_size.z)) { return 0.0; }
  return load_x(row + u32(column));
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let item = flat_id(group, groups, local, 64u);
  if (item >= params.items) { return; }
  let tiles_h = (params.out_size.y + $(outputs - 1)u) / $(outputs)u;
  let tiles_w = (params.out_size.z + $(outputs - 1)u) / $(outputs)u;
  let tiles = params.items / params.in_channels;
  let tile = item % tiles;
  let c = item / tiles;
  let h0 = i32(tile / tiles_w % tiles_h * $(outputs)u) - i32(params.padding.y);
  let w0 = i32(tile % tiles_w * $(outputs)u) - i32(params.padding.z);
  let plane = tile / tiles_w / tiles_h * params.in_channels + c;
#for r in 0..side
  var row$r = Line();
  if (h0 + $r >= 0 && h0 + $r < i32(params.in_size.y)) {
    let at = (plane * params.in_size.y + u32(h0 + $r)) * params.in_size.z;
    row$r = transform(Line(
#for w in 0..side
        x_at(at, w0 + $w),
#end
        ));
  }
#end
  let wide = (tiles + 3u) / 4u * 4u;
  let to = c * wide + tile;
  let size = params.in_channels * wide;
#for w in 0..side
  let column$w = transform(Line(
#for h in 0..side
      row$h[$w],
#end
      ));
#for h in 0..side
  y[$(h * side + w)u * size + to] = column$w[$h];
#end
#end
}
