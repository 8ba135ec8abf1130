// y[p, oh, ow] = plane p of x sampled at the place of (oh, ow): nearest element, bilinear, or bilinear with a filter as
// wide as the reduction (antialias). One u32 word of y per invocation.
// Roofline: memory bound. Bytes = x + y once; the 4 (nearest: 1) reads of a result share cache lines with its
// neighbours. Antialias reads about (2 scale)^2 elements a result, each at most 4 times in all.
// `scale` is input steps per result step.
// Host guarantees: in_h and in_w > 0; y has n elements, out_h * out_w to a plane.
#option mode nearest | bilinear | antialias
#tensor x read f16 | f32
#tensor y words f16 | f32
#include "common/index.wgsl"

struct Params {
  in_h: u32, in_w: u32, out_h: u32, out_w: u32, scale_h: f32, scale_w: f32, offset: f32, n: u32
}
@group(0) @binding(0) var<uniform> params: Params;

#if mode == nearest
fn nearest(plane: u32, oh: u32, ow: u32) -> f32 {
  let h = min(u32(f32(oh) * params.scale_h), params.in_h - 1u);
  let w = min(u32(f32(ow) * params.scale_w), params.in_w - 1u);
  return load_x((plane * params.in_h + h) * params.in_w + w);
}
#elif mode == bilinear
// offset is 0.5 where pixels are areas, 0 where corners are aligned.
fn source(o: u32, scale: f32) -> f32 { return max((f32(o) + params.offset) * scale - params.offset, 0.0); }

fn bilinear(plane: u32, oh: u32, ow: u32) -> f32 {
  let at_h = source(oh, params.scale_h);
  let at_w = source(ow, params.scale_w);
  let h = min(u32(at_h), params.in_h - 1u);
  let w = min(u32(at_w), params.in_w - 1u);
  let part_h = min(at_h - f32(h), 1.0);
  let part_w = min(at_w - f32(w), 1.0);
  let right = select(0u, 1u, w + 1u < params.in_w);
  let top = (plane * params.in_h + h) * params.in_w + w;
  let bottom = top + select(0u, params.in_w, h + 1u < params.in_h);
  return (1.0 - part_h) * ((1.0 - part_w) * load_x(top) + part_w * load_x(top + right)) +
      part_h * ((1.0 - part_w) * load_x(bottom) + part_w * load_x(bottom + right));
}
#else
// Along one axis: centre of the triangle, its first and last + 1 element, and 1 / half its width.
struct Filter { centre: f32, begin: u32, end: u32, slope: f32 }

fn filter_at(o: u32, scale: f32, size: u32) -> Filter {
  let support = max(scale, 1.0);
  let centre = scale * (f32(o) + 0.5);
  return Filter(centre, u32(max(centre - support + 0.5, 0.0)), min(u32(centre + support + 0.5), size), 1.0 / support);
}

fn weight_of(f: Filter, i: u32) -> f32 { return max(1.0 - abs((f32(i) - f.centre + 0.5) * f.slope), 0.0); }

fn antialias(plane: u32, oh: u32, ow: u32) -> f32 {
  let h = filter_at(oh, params.scale_h, params.in_h);
  let w = filter_at(ow, params.scale_w, params.in_w);
  var sum = 0.0;
  var total = 0.0;
  for (var i = h.begin; i < h.end; i++) {
    for (var j = w.begin; j < w.end; j++) {
      let part = weight_of(h, i) * weight_of(w, j);
      sum += part * load_x((plane * params.in_h + i) * params.in_w + j);
      total += part;
    }
  }
  return select(0.0, sum / total, total > 0.0);
}
#end

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word_at = flat_id(group, groups, local, 64u);
  if (word_at * y_lanes >= params.n) { return; }
  var word = 0u;
  for (var lane = 0u; lane < y_lanes; lane++) {
    let i = word_at * y_lanes + lane;
    if (i >= params.n) { break; }
    word |= encode_y(lane, $(mode)(i / params.out_w / params.out_h, i / params.out_w % params.out_h, i % params.out_w));
  }
  y[word_at] = word;
}
