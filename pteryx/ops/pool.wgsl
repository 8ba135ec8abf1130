// y[p, oh, ow] = result over the window of (oh, ow) in plane p: a mean or the largest element. One u32 word of y per
// invocation.
// Roofline: memory bound. Bytes = x + y once where windows do not overlap; overlapping windows are read again from
// the cache, KH KW / (SH SW) times in all.
// Host guarantees: lowest is -inf.
#option result max | mean
#option divisor given | window | area  // of a mean: params.divisor, or elements with or without the padding
#option adaptive     // windows cut x into out_h x out_w parts
#option has_indices  // where the largest elements are
#tensor x read f16 | f32
#tensor y words f16 | f32
#if has_indices
#tensor indices raw_write u32
#end
#include "common/index.wgsl"

struct Params {
  in_h: u32, in_w: u32, out_h: u32, out_w: u32, kernel_h: u32, kernel_w: u32, stride_h: u32, stride_w: u32,
  padding_h: u32, padding_w: u32, dilation_h: u32, dilation_w: u32, n: u32, lowest: f32, divisor: f32
}
@group(0) @binding(0) var<uniform> params: Params;

// A window along one axis: the part inside the input, every dilation-th of it, and the size with the padding.
struct Span { begin: u32, end: u32, size: u32 }

fn span(o: u32, size: u32, outs: u32, kernel: u32, stride: u32, padding: u32, dilation: u32) -> Span {
#if adaptive
  let begin = o * size / outs;
  let end = ((o + 1u) * size + outs - 1u) / outs;
  return Span(begin, end, end - begin);
#else
  let begin = i32(o * stride) - i32(padding);
  let end = min(begin + i32((kernel - 1u) * dilation) + 1, i32(size + padding));
  let missed = u32(max(-begin, 0));
  let inside = u32(max(begin, 0)) + (dilation - missed % dilation) % dilation;
  return Span(inside, u32(clamp(end, 0, i32(size))), u32(end - begin));
#end
}

fn is_nan(v: f32) -> bool { return (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u; }

fn pool(i: u32) -> f32 {
  let h = span(i / params.out_w % params.out_h, params.in_h, params.out_h, params.kernel_h, params.stride_h,
               params.padding_h, params.dilation_h);
  let w = span(i % params.out_w, params.in_w, params.out_w, params.kernel_w, params.stride_w, params.padding_w,
               params.dilation_w);
  let plane = i / params.out_w / params.out_h * params.in_h;
  var sum = 0.0;
  var best = params.lowest;
  var at = h.begin * params.in_w + w.begin;
  var area = 0u;
  for (var y_at = h.begin; y_at < h.end; y_at += params.dilation_h) {
    for (var x_at = w.begin; x_at < w.end; x_at += params.dilation_w) {
      let v = load_x((plane + y_at) * params.in_w + x_at);
      sum += v;
      area += 1u;
      if (v > best || is_nan(v)) {
        best = v;
        at = y_at * params.in_w + x_at;
      }
    }
  }
#if has_indices
  indices[i] = at;
#end
#if result == max
  return best;
#else
  if (area == 0u) { return 0.0; }
#if divisor == given
  return sum / params.divisor;
#elif divisor == window
  return sum / f32(h.size * w.size);
#else
  return sum / f32(area);
#end
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
    if (i < params.n) { word |= encode_y(lane, pool(i)); }
  }
  y[word_at] = word;
}
