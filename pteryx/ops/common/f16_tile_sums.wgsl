// The sums of an invocation: sumI_J has four columns, from first_n + J * 64 + column * 4 on, of row first_m + I / 4 * 64 +
// row * 4 + I % 4, of the tile at (first_m, first_n) of `part`. A part of main, whose builtins are group, groups and local.
  let tiles_m = (params.m + tile_m - 1u) / tile_m;
  let tiles_n = (params.n + tile_n - 1u) / tile_n;
  let tile = flat_group(group, groups);
  let part = tile / tiles_m / tiles_n;
  if (part >= params.splits) { return; }
  let first_m = tile % tiles_m * tile_m;
  let first_n = tile / tiles_m % tiles_n * tile_n;
  const wide = $(steps * splits * 4)u;
  let first_step = part * $(steps)u;
  let row = local % 16u;
  let column = local / 16u;
  // What an invocation fetches: 16 of k of a row of b, 8 or 16 of a row of a.
  let b_row = local % 128u;
  let half = local / 128u;
  let a_row = local % tile_m;
  let a_eight = local / tile_m * $(row_fours)u;

#for i in 0..row_fours * 4
  var sum$(i)_0 = vec4<f32>(0.0);
  var sum$(i)_1 = vec4<f32>(0.0);
#end
#for v in 0..row_fours
  var next_a$v: vec4<u32>;
#end
#if unit_b == 32
  var next_b: vec2<u32>;
#elif unit_b == 16
  var next_b: vec4<u32>;
#else
  var next_b0: vec4<u32>;
  var next_b1: vec4<u32>;
#end
#if scaled_b
  var next_scale: RawScale;
#end
#include "common/f16_tile_fetch.wgsl" at=0u
  for (var step = 0u; step < $(steps)u; step++) {
    workgroupBarrier();
#for v in 0..row_fours
#for j in 0..4
    tile_a[(a_eight + $(v)u) * 4u + $(j)u][a_row / 4u][a_row % 4u] = next_a$v[$j];
#end
#end
    {
#if scaled_b
      let scale = scale_b(next_scale, first_n + b_row, (first_step + step) * 32u + half * 16u);
#end
#if unit_b == 32
      let low = expand_b(next_b.x, scale);
      let high = expand_b(next_b.y, scale);
#elif unit_b == 16
      let low = expand_b(next_b.x, next_b.y, scale);
      let high = expand_b(next_b.z, next_b.w, scale);
#else
      let low = next_b0;
      let high = next_b1;
#end
#for j in 0..4
      tile_b[half * 8u + $(j)u][b_row / 4u][b_row % 4u] = low[$j];
      tile_b[half * 8u + $(j + 4)u][b_row / 4u][b_row % 4u] = high[$j];
#end
    }
    workgroupBarrier();
    let next = min(step + 1u, $(steps - 1)u);
#include "common/f16_tile_fetch.wgsl" at=next
    for (var k = 0u; k < 16u; k++) {
#for h in 0..2
      let b$h = tile_b[k][$(h * 16)u + column];
#for j in 0..4
      let pair$(h)_$j = unpack2x16float(b$h[$j]);
#end
      let even$h = vec4<f32>(pair$(h)_0.x, pair$(h)_1.x, pair$(h)_2.x, pair$(h)_3.x);
      let odd$h = vec4<f32>(pair$(h)_0.y, pair$(h)_1.y, pair$(h)_2.y, pair$(h)_3.y);
#end
#for v in 0..row_fours
      let a$v = tile_a[k][$(v * 16)u + row];
#for i in 0..4
      {
        let pair = unpack2x16float(a$v[$i]);
        sum$(v * 4 + i)_0 = fma(vec4<f32>(pair.y), odd0, fma(vec4<f32>(pair.x), even0, sum$(v * 4 + i)_0));
        sum$(v * 4 + i)_1 = fma(vec4<f32>(pair.y), odd1, fma(vec4<f32>(pair.x), even1, sum$(v * 4 + i)_1));
      }
#end
#end
    }
  }
