// y[i] = whether any, or all, of x that belongs to it is not 0. One workgroup per u32 word of y.
// Host guarantees: kept dims are those of y and folded dims the rest of x, both right-aligned with their strides into x,
// first = 8 - rank.
#option any_of
#tensor x read
#tensor y words
#include "common/index.wgsl"

struct Params {
  kept: array<vec4<u32>, 2>, kept_strides: array<vec4<u32>, 2>, folded: array<vec4<u32>, 2>,
  folded_strides: array<vec4<u32>, 2>,
  n: u32, kept_first: u32, folded_first: u32, count: u32
}
@group(0) @binding(0) var<uniform> params: Params;

var<workgroup> partial: array<u32, 64>;

#if any_of
const start = 0u;
fn combine(a: u32, b: u32) -> u32 { return a | b; }
#else
const start = 1u;
fn combine(a: u32, b: u32) -> u32 { return a & b; }
#end

fn kept_at(i: u32) -> u32 {
  var rest = i;
  var at = 0u;
  for (var d = 8u; d > params.kept_first; d--) {
    let size = params.kept[(d - 1u) >> 2u][(d - 1u) & 3u];
    at += (rest % size) * params.kept_strides[(d - 1u) >> 2u][(d - 1u) & 3u];
    rest /= size;
  }
  return at;
}

fn folded_at(i: u32) -> u32 {
  var rest = i;
  var at = 0u;
  for (var d = 8u; d > params.folded_first; d--) {
    let size = params.folded[(d - 1u) >> 2u][(d - 1u) & 3u];
    at += (rest % size) * params.folded_strides[(d - 1u) >> 2u][(d - 1u) & 3u];
    rest /= size;
  }
  return at;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let w = flat_group(group, groups);
  var word = 0u;
  for (var lane = 0u; lane < y_lanes; lane++) {
    let i = w * y_lanes + lane;
    var mine = start;
    if (i < params.n) {
      let at = kept_at(i);
      for (var j = local; j < params.count; j += 64u) {
        mine = combine(mine, select(0u, 1u, load_x(at + folded_at(j)) != x_t(0)));
      }
    }
    partial[local] = mine;
    for (var half = 32u; half > 0u; half >>= 1u) {
      workgroupBarrier();
      if (local < half) { partial[local] = combine(partial[local], partial[local + half]); }
    }
    workgroupBarrier();
    if (i < params.n) { word |= encode_y(lane, y_t(partial[0])); }
    workgroupBarrier();
  }
  if (local == 0u && w * y_lanes < params.n) { y[w] = word; }
}
