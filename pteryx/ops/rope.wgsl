// y[i] = x[i] * c + x[partner of i] * n: every pair (a, b) of a row becomes (a cos - b sin, b cos + a sin).
// One u32 word of a result per invocation; the words of yk follow those of yq.
// Host guarantees: x is [batch, length, heads, size] or, with heads_first, [batch, heads, length, size]; the tables have
// every row that is asked for, at batch_stride, position_stride and head_stride rows (0: the same one for all).
#option layout adjacent | halves | interleaved  // pairs are neighbours; halves of a row; neighbours, and so are cos and sin
#option live_slots
#tensor xq read f16 | f32
#if layout == interleaved
#tensor freqs read f16 | f32
#tensor yq words f16 | f32
#else
#tensor xk read f16 | f32
#tensor cos_of read f16 | f32
#tensor sin_of read f16 | f32
#tensor yq words f16 | f32
#tensor yk words f16 | f32
#end
#include "common/index.wgsl"
#include "common/live.wgsl"

struct Params {
  n_q: u32, n_k: u32, words_q: u32, words: u32, heads_q: u32, heads_k: u32,
  length: u32, size: u32, rotary: u32, start: u32,
  heads_first: u32, batch_stride: u32, position_stride: u32, head_stride: u32
}
@group(0) @binding(0) var<uniform> params: Params;

// The row of the tables for row i of x.
fn table_row(i: u32, heads: u32) -> u32 {
  let heads_first = params.heads_first == 1u;
  let position = select(i / heads, i, heads_first) % params.length;
  let head = select(i, i / params.length, heads_first) % heads;
  return i / (params.length * heads) * params.batch_stride +
      (u32(live(params.start)) + position) * params.position_stride + head * params.head_stride;
}

// The other element of d's pair.
fn partner(d: u32) -> u32 {
#if layout == halves
  return select(d - params.rotary / 2u, d + params.rotary / 2u, d < params.rotary / 2u);
#else
  return d ^ 1u;
#end
}

// (c, n) for element d by that row of the tables: cos, and sin signed as d's place in the pair.
fn turn(at_row: u32, d: u32) -> vec2<f32> {
#if layout == halves
  let at = at_row * params.rotary + d;
  let n = load_sin_of(at);
  return vec2<f32>(load_cos_of(at), select(n, -n, d < params.rotary / 2u));
#elif layout == adjacent
  let at = at_row * (params.size / 2u) + d / 2u;
  let n = load_sin_of(at);
  return vec2<f32>(load_cos_of(at), select(n, -n, (d & 1u) == 0u));
#else
  let at = at_row * params.size + (d & 0xfffffffeu);
  let n = load_freqs(at + 1u);
  return vec2<f32>(load_freqs(at), select(n, -n, (d & 1u) == 0u));
#end
}

#include "common/rotate.wgsl" which=q
#if layout != interleaved
#include "common/rotate.wgsl" which=k
#end

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let w = flat_id(group, groups, local, 64u);
  if (w >= params.words) { return; }
#if layout == interleaved
  rotate_q(w);
#else
  if (w < params.words_q) { rotate_q(w); } else { rotate_k(w - params.words_q); }
#end
}
