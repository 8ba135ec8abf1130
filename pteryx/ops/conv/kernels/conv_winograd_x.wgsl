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
  // All that is read is asked for before the first of it is used, at the edges what is next to them.
#for w in 0..side
  let in_w$w = w0 + $w >= 0 && w0 + $w < i32(params.in_size.z);
  let near$w = u32(max(min(w0 + $w, i32(params.in_size.z) - 1), 0));
#end
#for h in 0..side
  let in_h$h = h0 + $h >= 0 && h0 + $h < i32(params.in_size.y);
  let at$h = (plane * params.in_size.y + u32(max(min(h0 + $h, i32(params.in_size.y) - 1), 0))) * params.in_size.z;
#for w in 0..side
#if x_type == f16
  let word$(h)_$w = x[(at$h + near$w) / 2u];
#else
  let word$(h)_$w = x[at$h + near$w];
#end
#end
#end
#for h in 0..side
  let row$h = transform(Line(
#for w in 0..side
#if x_type == f16
      select(0.0, unpack2x16float(word$(h)_$w >> ((at$h + near$w) % 2u * 16u)).x, in_h$h && in_w$w),
#else
      select(0.0, bitcast<f32>(word$(h)_$w), in_h$h && in_w$w),
#end
#end
      ));
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
