// y[i] = x[base + sum over dims of source(c_d) * stride_d], bit for bit. One u32 word of y per invocation.
// Host guarantees: x and y have one element type; dims are those of y or a finer split of them, right-aligned, first =
// 8 - rank; u32 arithmetic wraps, so strides, shifts and base may be negative. The prelude gives `const rule: u32` and
// `fn base() -> u32`, which is params.base or, where a start is live, follows from it.
#include "common/index.wgsl"

struct Params {
  dims: array<vec4<u32>, 2>, strides: array<vec4<u32>, 2>, shifts: array<vec4<u32>, 2>, extents: array<vec4<u32>, 2>,
  n: u32, first: u32, base: u32, fill: u32, diagonal: i32, start: u32, start_extent: u32
}
@group(0) @binding(0) var<uniform> params: Params;

const bits = 32u / y_lanes;
// The values of enum class Rule.
const rule_every = 0u;
const rule_wrap = 1u;
const rule_pad = 2u;
const rule_reflect = 3u;
const rule_replicate = 4u;
const rule_lower = 5u;
const rule_upper = 6u;

fn element(i: u32) -> u32 {
  var at = base();
  var inside = true;
  var rest = i;
  for (var d = 8u; d > params.first; d--) {
    let q = (d - 1u) >> 2u;
    let r = (d - 1u) & 3u;
    let size = params.dims[q][r];
    var c = rest % size;
    rest /= size;
    if (rule >= rule_wrap && rule <= rule_replicate) {
      c += params.shifts[q][r];
      let extent = params.extents[q][r];
      if (rule == rule_wrap) { c %= extent; }
      if (rule == rule_pad) { inside = inside && c < extent; }
      if (rule == rule_reflect) {
        let t = abs(bitcast<i32>(c));
        c = u32(select(t, 2 * (i32(extent) - 1) - t, t >= i32(extent)));
      }
      if (rule == rule_replicate) { c = u32(clamp(bitcast<i32>(c), 0, i32(extent) - 1)); }
    }
    at += c * params.strides[q][r];
  }
  if (rule == rule_lower || rule == rule_upper) {
    let width = params.dims[1][3];
    let off = i32(i % width) - i32((i / width) % params.dims[1][2]);
    inside = select(off >= params.diagonal, off <= params.diagonal, rule == rule_lower);
  }
  if (!inside) { return params.fill; }
  return extractBits(x[at / y_lanes], (at % y_lanes) * bits, bits);
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
    word |= element(i) << (lane * bits);
  }
  y[w] = word;
}
