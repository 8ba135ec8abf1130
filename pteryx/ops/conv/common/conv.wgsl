// What every convolution route shares. Sizes are (depth, height, width, product); channels are per group.
// The prelude gives bias_at(channel), finish(v): the clamp, and put(at, count, v): the first `count` of four
// neighbouring results.
#include "common/index.wgsl"

struct Params {
  in_size: vec4<u32>, out_size: vec4<u32>, kernel: vec4<u32>, stride: vec4<u32>, padding: vec4<u32>,
  dilation: vec4<u32>, groups: u32, in_channels: u32, out_channels: u32, items: u32, lo: f32, hi: f32,
  splits: u32, split_terms: u32, split_size: u32
}
@group(0) @binding(0) var<uniform> params: Params;
