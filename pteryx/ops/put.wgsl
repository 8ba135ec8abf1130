// Every element of y whose place along `dim` is named by the index takes, or adds, the element of src that goes with
// it; of several the last is taken, and one outside y goes nowhere. One u32 word of y per invocation, which looks for its
// elements in the index: no two invocations write one word, and sums do not depend on any order of threads.
// Host guarantees: dims are those of y, right-aligned, first = 8 - rank; strides are 0 and limits open at `dim`.
#option what src | value | add  // takes elements of src, takes params.fill, adds elements of src
#option arg 0..63               // of the node: the index
#option from_end
#option reports
#tensor index read i32
#if what == add
#tensor x read
#tensor src read
#elif what == src
#tensor src raw u32
#end
#tensor y words
#include "common/index.wgsl"
#include "common/lanes.wgsl"

struct Params {
  dims: array<vec4<u32>, 2>, limits: array<vec4<u32>, 2>, index_strides: array<vec4<u32>, 2>,
  src_strides: array<vec4<u32>, 2>,
  n: u32, first: u32, dim: u32, extent: i32, count: u32, index_step: u32, src_step: u32, fill: u32,
  fault: u32
}
@group(0) @binding(0) var<uniform> params: Params;

#include "common/place.wgsl" name=index

// begin: the element before; take: src element `at` into it; finish: its bits in their lane.
#if what == add
alias acc = y_t;
fn begin(i: u32, lane: u32, word: u32) -> acc { return y_t(load_x(i)); }
fn take(v: acc, at: u32) -> acc { return v + y_t(load_src(at)); }
fn finish(lane: u32, v: acc) -> u32 { return encode_y(lane, v); }
#else
alias acc = u32;
fn begin(i: u32, lane: u32, word: u32) -> acc { return extractBits(word, lane * lane_bits, lane_bits); }
#if what == src
fn take(v: acc, at: u32) -> acc { return moved(src[at / y_lanes], at, 0u); }
#else
fn take(v: acc, at: u32) -> acc { return params.fill; }
#end
fn finish(lane: u32, v: acc) -> u32 { return v << (lane * lane_bits); }
#end

fn element(i: u32, lane: u32, word: u32) -> u32 {
  var value = begin(i, lane, word);
  var rest = i;
  var place = 0;
  var inside = true;
  var at_index = 0u;
  var at_src = 0u;
  for (var d = 8u; d > params.first; d--) {
    let q = (d - 1u) >> 2u;
    let r = (d - 1u) & 3u;
    let size = params.dims[q][r];
    let c = rest % size;
    rest /= size;
    if (d - 1u == params.dim) { place = i32(c); }
    inside = inside && c < params.limits[q][r];
    at_index += c * params.index_strides[q][r];
    at_src += c * params.src_strides[q][r];
  }
  if (inside) {
    for (var j = 0u; j < params.count; j++) {
      let k = place_index(at_index + j * params.index_step, params.extent);
      if (k == place) { value = take(value, at_src + j * params.src_step); }
    }
  }
  return finish(lane, value);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let w = flat_id(group, groups, local, 64u);
  if (w * y_lanes >= params.n) { return; }
  let old = y[w];
  var word = 0u;
  for (var lane = 0u; lane < y_lanes; lane++) {
    let i = w * y_lanes + lane;
    if (i >= params.n) { break; }
    word |= element(i, lane, old);
  }
  y[w] = word;
}
