// y[b, c, oh, ow] = plane (b, c) of x sampled at grid[b, oh, ow] = (column, row), both in [-1, 1] across the image.
// One u32 word of y per invocation.
// Roofline: memory bound. Bytes = x + y + grid once where the samples of neighbours lie close; a bilinear sample reads
// 4 elements, a cubic one 16.
// mode: 0 bilinear, 1 nearest, 2 cubic. outside: 0 zero, 1 the border, 2 reflection. align: corners are centres.
// Host guarantees: x is [batch, channels, in_h, in_w] with in_h and in_w > 0, y [batch, channels, out_size], n elements.
#include "common/index.wgsl"

struct Params { in_h: u32, in_w: u32, out_size: u32, channels: u32, n: u32 }
@group(0) @binding(0) var<uniform> params: Params;

override mode: u32 = 0u;
override outside: u32 = 0u;
override align: u32 = 0u;

fn unnormalize(v: f32, size: u32) -> f32 {
  return select(((v + 1.0) * f32(size) - 1.0) * 0.5, (v + 1.0) * 0.5 * f32(size - 1u), align == 1u);
}

// Mirrors v at the first and last centre (aligned) or at the edges of the image.
fn reflect_at(v: f32, size: u32) -> f32 {
  let low = select(-0.5, 0.0, align == 1u);
  let width = f32(size) - select(0.0, 1.0, align == 1u);
  if (width <= 0.0) { return 0.0; }
  let distance = abs(v - low);
  let flips = floor(distance / width);
  let rest = distance - flips * width;
  return low + select(rest, width - rest, fract(flips * 0.5) != 0.0);
}

fn bring_inside(v: f32, size: u32) -> f32 {
  if (outside == 0u) { return v; }
  var inside = v;
  if (outside == 2u) { inside = reflect_at(v, size); }
  return clamp(inside, 0.0, f32(size - 1u));
}

// The element at a whole (row, column); 0 outside.
fn element(plane: u32, row: f32, column: f32) -> f32 {
  if (!(row >= 0.0 && row < f32(params.in_h) && column >= 0.0 && column < f32(params.in_w))) { return 0.0; }
  return load_x((plane * params.in_h + u32(row)) * params.in_w + u32(column));
}

fn bilinear(plane: u32, row: f32, column: f32) -> f32 {
  let top = floor(row);
  let left = floor(column);
  let h = row - top;
  let w = column - left;
  return (1.0 - h) * ((1.0 - w) * element(plane, top, left) + w * element(plane, top, left + 1.0)) +
         h * ((1.0 - w) * element(plane, top + 1.0, left) + w * element(plane, top + 1.0, left + 1.0));
}

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

fn sample(i: u32) -> f32 {
  let plane = i / params.out_size;
  let at = (plane / params.channels * params.out_size + i % params.out_size) * 2u;
  let column = unnormalize(load_grid(at), params.in_w);
  let row = unnormalize(load_grid(at + 1u), params.in_h);
  if (mode == 2u) { return cubic(plane, row, column); }
  let h = bring_inside(row, params.in_h);
  let w = bring_inside(column, params.in_w);
  if (mode == 1u) { return element(plane, round(h), round(w)); }
  return bilinear(plane, h, w);
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
