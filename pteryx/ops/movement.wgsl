// y[i] = x[base + sum over dims of source(c_d) * stride_d], bit for bit. One u32 word of y per invocation.
// Host guarantees: x and y have one element type; dims are those of y or a finer split of them, right-aligned, first =
// 8 - rank; u32 arithmetic wraps, so strides, shifts and base may be negative.
#option rule every | wrap | pad | reflect | replicate | lower | upper  // enum class Rule
#option live_start  // params.base is for one step of a start that is known only while running
#option live_slots
#tensor x raw u32
#tensor y words
#include "common/index.wgsl"
#include "common/lanes.wgsl"

struct Params {
  dims: array<vec4<u32>, 2>, strides: array<vec4<u32>, 2>, shifts: array<vec4<u32>, 2>, extents: array<vec4<u32>, 2>,
  n: u32, first: u32, base: u32, fill: u32, diagonal: i32, start: u32, start_extent: u32
}
@group(0) @binding(0) var<uniform> params: Params;

#if live_start
#include "common/live.wgsl"
fn base() -> u32 {
  let extent = i32(params.start_extent);
  let start = live(params.start);
  return u32(clamp(select(start, start + extent, start < 0), 0, extent)) * params.base;
}
#else
fn base() -> u32 { return params.base; }
#end

// The bits of an element in their lane.
fn element(i: u32, lane: u32) -> u32 {
  var at = base();
  var inside = true;
  var rest = i;
  for (var d = 8u; d > params.first; d--) {
    let q = (d - 1u) >> 2u;
    let r = (d - 1u) & 3u;
    let size = params.dims[q][r];
    var c = rest % size;
    rest /= size;
#if rule == wrap || rule == pad || rule == reflect || rule == replicate
    c += params.shifts[q][r];
    let extent = params.extents[q][r];
#end
#if rule == wrap
    c %= extent;
#elif rule == pad
    inside = inside && c < extent;
#elif rule == reflect
    let t = abs(bitcast<i32>(c));
    c = u32(select(t, 2 * (i32(extent) - 1) - t, t >= i32(extent)));
#elif rule == replicate
    c = u32(clamp(bitcast<i32>(c), 0, i32(extent) - 1));
#end
    at += c * params.strides[q][r];
  }
#if rule == lower || rule == upper
  let width = params.dims[1][3];
  let off = i32(i % width) - i32((i / width) % params.dims[1][2]);
#end
#if rule == lower
  inside = off <= params.diagonal;
#elif rule == upper
  inside = off >= params.diagonal;
#end
  if (!inside) { return params.fill << (lane * lane_bits); }
  return moved(x[at / y_lanes], at, lane);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let w = flat_id(group, groups, local, 64u);
  if (w * y_lanes >= params.n) { return; }
  var word = 0u;
  for (var lane = 0u; lane < y_lanes; lane++) {
    let i = w * y_lanes + lane;
    if (i >= params.n) { break; }
    word |= element(i, lane);
  }
  y[w] = word;
}
