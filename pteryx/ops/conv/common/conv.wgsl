// What every convolution shares. Sizes are (depth, height, width, product); channels are per group.
#option has_bias
#option has_lo  // results are clamped
#option has_hi
#include "common/index.wgsl"
#include "common/row_words.wgsl"

struct Params {
  in_size: vec4<u32>, out_size: vec4<u32>, kernel: vec4<u32>, stride: vec4<u32>, padding: vec4<u32>,
  dilation: vec4<u32>, groups: u32, in_channels: u32, out_channels: u32, items: u32, lo: f32, hi: f32,
  splits: u32, split_terms: u32, split_size: u32
}
@group(0) @binding(0) var<uniform> params: Params;

fn bias_at(channel: u32) -> f32 {
#if has_bias
  return load_bias(channel);
#else
  return 0.0;
#end
}

fn finish(sum: vec4<f32>) -> vec4<f32> {
  var v = sum;
#if has_lo
  v = max(v, vec4<f32>(params.lo));
#end
#if has_hi
  v = min(v, vec4<f32>(params.hi));
#end
  return v;
}

// The first `count` of four neighbouring results of a row.
fn put(at: u32, count: u32, values: vec4<f32>) {
  var v = values;
  for (var i = 0u; i < count; i += y_lanes) {
    var word = 0u;
    for (var lane = 0u; lane < y_lanes; lane++) { word |= encode_y(lane, v[i + lane]); }
    y[(at + i) / y_lanes] = word;
  }
}
