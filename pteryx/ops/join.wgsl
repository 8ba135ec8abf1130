// y[r, c] = x_k[r * stride_k + c - start_k + offset_k] for the piece k with start_k <= c < start_(k + 1), bit for bit:
// rows of y put together from pieces. Elements of y outside the pieces keep what they hold.
// One u32 word of y per invocation; invocations walk blocks of `block` words, `block_stride` apart, from word `base` on.
// Host guarantees: starts go up and end with `row`; every piece has the rows that are read of it.
// The prelude gives `const pieces: u32` (at most 7) and `fn piece(k: u32, w: u32) -> u32`, word w of piece k.
#include "common/index.wgsl"

struct Params {
  starts: array<vec4<u32>, 2>, strides: array<vec4<u32>, 2>, offsets: array<vec4<u32>, 2>,
  n: u32, row: u32, items: u32, base: u32, block: u32, block_stride: u32
}
@group(0) @binding(0) var<uniform> params: Params;

const bits = 32u / y_lanes;

fn start(k: u32) -> u32 { return params.starts[k >> 2u][k & 3u]; }

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let item = flat_id(group, groups, local, 64u);
  if (item >= params.items) { return; }
  let w = params.base + (item / params.block) * params.block_stride + item % params.block;
  var word = y[w];
  for (var lane = 0u; lane < y_lanes; lane++) {
    let i = w * y_lanes + lane;
    if (i >= params.n) { break; }
    let c = i % params.row;
    if (c < start(0u) || c >= start(pieces)) { continue; }
    var k = 0u;
    while (c >= start(k + 1u)) { k++; }
    let at = (i / params.row) * params.strides[k >> 2u][k & 3u] + c - start(k) + params.offsets[k >> 2u][k & 3u];
    let value = extractBits(piece(k, at / y_lanes), (at % y_lanes) * bits, bits);
    word = insertBits(word, value, lane * bits, bits);
  }
  y[w] = word;
}
