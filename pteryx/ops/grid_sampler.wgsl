// y[b, c, oh, ow] = plane (b, c) of x sampled at grid[b, oh, ow] = (column, row), both in [-1, 1] across the image.
// One u32 word of y per invocation.
// Roofline: memory bound. Bytes = x + y + grid once where the samples of neighbours lie close; a bilinear sample reads
// 4 elements, a cubic one 16.
// Host guarantees: x is [batch, channels, in_h, in_w] with in_h and in_w > 0, y [batch, channels, out_size], n elements.
#option mode bilinear | nearest | cubic
#option outside zero | border | reflection
#option align  // corners are centres
#tensor x read f16 | f32
#tensor grid read f16 | f32
#tensor y words f16 | f32
#include "common/index.wgsl"

struct Params { in_h: u32, in_w: u32, out_size: u32, channels: u32, n: u32 }
@group(0) @binding(0) var<uniform> params: Params;

fn unnormalize(v: f32, size: u32) -> f32 {
#if align
  return (v + 1.0) * 0.5 * f32(size - 1u);
#else
  return ((v + 1.0) * f32(size) - 1.0) * 0.5;
#end
}

#if outside == reflection
// Mirrors v at the first and last centre (aligned) or at the edges of the image.
fn reflect_at(v: f32, size: u32) -> f32 {
#if align
  let low = 0.0;
  let width = f32(size) - 1.0;
#else
  let low = -0.5;
  let width = f32(size);
#end
  if (width <= 0.0) { return 0.0; }
  let distance = abs(v - low);
  let flips = floor(distance / width);
  let rest = distance - flips * width;
  return low + select(rest, width - rest, fract(flips * 0.5) != 0.0);
}
#end

fn bring_inside(v: f32, size: u32) -> f32 {
#if outside == zero
  return v;
#elif outside == border
  return clamp(v, 0.0, f32(size - 1u));
#else
  return clamp(reflect_at(v, size), 0.0, f32(size - 1u));
#end
}

// The element at a whole (row, column); 0 outside.
fn element(plane: u32, row: f32, column: f32) -> f32 {
  if (!(row >= 0.0 && row < f32(params.in_h) && column >= 0.0 && column < f32(params.in_w))) { return 0.0; }
  return load_x((plane * params.in_h + u32(row)) * params.in_w + u32(column));
}

#if mode == bilinear
fn bilinear(plane: u32, row: f32, column: f32) -> f32 {
  let top = floor(row);
  let left = floor(column);
  let h = row - top;
  let w = column - left;
  return (1.0 - h) * ((1.0 - w) * element(plane, top, left) + w * element(plane, top, left + 1.0)) +
      h * ((1.0 - w) * element(plane, top + 1.0, left) + w * element(plane, top + 1.0, left + 1.0));
}
#elif mode == cubic
// Cubic convolution with a = -0.75: the shares of the four elements around a place t behind the second.
fn cubic_shares(t: f32) -> vec4<f32> {
  let far = vec2<f32>(t + 1.0, 2.0 - t);
  let near = vec2<f32>(t, 1.0 - t);
  let f = ((-0.75 * far + 3.75) * far - 6.0) * far + 3.0;
  let n = (1.25 * near - 2.25) * near * near + 1.0;
  return vec4<f32>(f.x, n.x, n.y, f.y);
}

fn cubic_row(plane: u32, row: f32, left: f32, shares: vec4<f32>) -> f32 {
  let h = bring_inside(row, params.in_h);
  return shares.x * element(plane, h, bring_inside(left - 1.0, params.in_w)) +
      shares.y * element(plane, h, bring_inside(left, params.in_w)) +
      shares.z * element(plane, h, bring_inside(left + 1.0, params.in_w)) +
      shares.w * element(plane, h, bring_inside(left + 2.0, params.in_w));
}

fn cubic(plane: u32, row: f32, column: f32) -> f32 {
  let top = floor(row);
  let left = floor(column);
  let h = cubic_shares(row - top);
  let w = cubic_shares(column - left);
  return h.x * cubic_row(plane, top - 1.0, left, w) + h.y * cubic_row(plane, top, left, w) +
      h.z * cubic_row(plane, top + 1.0, left, w) + h.w * cubic_row(plane, top + 2.0, left, w);
}
#end

fn sample(i: u32) -> f32 {
  let plane = i / params.out_size;
  let at = (plane / params.channels * params.out_size + i % params.out_size) * 2u;
  let column = unnormalize(load_grid(at), params.in_w);
  let row = unnormalize(load_grid(at + 1u), params.in_h);
#if mode == cubic
  return cubic(plane, row, column);
#elif mode == nearest
  return element(plane, round(bring_inside(row, params.in_h)), round(bring_inside(column, params.in_w)));
#else
  return bilinear(plane, bring_inside(row, params.in_h), bring_inside(column, params.in_w));
#end
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word_at = flat_id(group, groups, local, 64u);
  if (word_at * y_lanes >= params.n) { return; }
  var word = 0u;
  for (var lane = 0u; lane < y_lanes; lane++) {
    let i = word_at * y_lanes + lane;
    if (i < params.n) { word |= encode_y(lane, sample(i)); }
  }
  y[word_at] = word;
}
