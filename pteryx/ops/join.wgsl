// y[r, c] = x_k[r * stride_k + c - start_k + offset_k] for the piece k with start_k <= c < start_(k + 1), bit for bit:
// rows of y put together from pieces. Elements of y outside the pieces keep what they hold.
// One word of y per invocation, of 4 bytes or of 16; invocations walk blocks of `block` words, `block_stride` apart, from
// word `base` on.
// Host guarantees: starts go up and end with `row`; every piece has the rows that are read of it.
#option pieces 1..7
#option wide  // a word is 16 bytes, all in elements of one piece; params count them
#if wide
alias cell = vec4<u32>;
#else
alias cell = u32;
#end
#tensor x0 raw cell
#if pieces > 1
#tensor x1 raw cell
#end
#if pieces > 2
#tensor x2 raw cell
#end
#if pieces > 3
#tensor x3 raw cell
#end
#if pieces > 4
#tensor x4 raw cell
#end
#if pieces > 5
#tensor x5 raw cell
#end
#if pieces > 6
#tensor x6 raw cell
#end
#if wide
#tensor y raw_write cell
#else
#tensor y words
#end
#include "common/index.wgsl"

struct Params {
  starts: array<vec4<u32>, 2>, strides: array<vec4<u32>, 2>, offsets: array<vec4<u32>, 2>,
  n: u32, row: u32, items: u32, base: u32, block: u32, block_stride: u32
}
@group(0) @binding(0) var<uniform> params: Params;

// Word w of piece k.
fn piece(k: u32, w: u32) -> cell {
#for i in 0..pieces - 1
  if (k == $(i)u) { return x$(i)[w]; }
#end
  return x$(pieces - 1)[w];
}

fn start(k: u32) -> u32 { return params.starts[k >> 2u][k & 3u]; }

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let item = flat_id(group, groups, local, 64u);
  if (item >= params.items) { return; }
  let w = params.base + (item / params.block) * params.block_stride + item % params.block;
#if wide
  let c = w % params.row;
  var k = 0u;
  while (c >= start(k + 1u)) { k++; }
  y[w] = piece(k, (w / params.row) * params.strides[k >> 2u][k & 3u] + c - start(k) + params.offsets[k >> 2u][k & 3u]);
#else
  const bits = 32u / y_lanes;
  var word = y[w];
  for (var lane = 0u; lane < y_lanes; lane++) {
    let i = w * y_lanes + lane;
    if (i >= params.n) { break; }
    let c = i % params.row;
    if (c < start(0u) || c >= start($(pieces)u)) { continue; }
    var k = 0u;
    while (c >= start(k + 1u)) { k++; }
    let at = (i / params.row) * params.strides[k >> 2u][k & 3u] + c - start(k) + params.offsets[k >> 2u][k & 3u];
    let value = extractBits(piece(k, at / y_lanes), (at % y_lanes) * bits, bits);
    word = insertBits(word, value, lane * bits, bits);
  }
  y[w] = word;
#end
}
