// What every convolution shares. Sizes are (depth, height, width, product); channels are per group.
#include "common/index.wgsl"

struct Params {
  in_size: vec4<u32>, out_size: vec4<u32>, kernel: vec4<u32>, stride: vec4<u32>, padding: vec4<u32>,
  dilation: vec4<u32>, groups: u32, in_channels: u32, out_channels: u32, items: u32, lo: f32, hi: f32, eps: f32,
  // Of products by tiles: the terms of a sum with what fills them up, which `splits` workgroups share; input channels of a
  // tap likewise; output channels of the packed weights likewise; the size of a tile.
  k: u32, splits: u32, wide_in: u32, wide_out: u32, tile_m: u32, tile_n: u32
}
@group(0) @binding(0) var<uniform> params: Params;
