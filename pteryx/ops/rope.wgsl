// y[i] = x[i] * c + x[partner of i] * n: every pair (a, b) of a row becomes (a cos - b sin, b cos + a sin).
// One u32 word of a result per invocation; the words of yk follow those of yq.
// Host guarantees: x is [batch, length, heads, size], the tables have every row that is asked for.
// The prelude gives `partner(d)`, `turn(s, d)` = (c, n) for element d at position s, and `rotate_q(w)`, `rotate_k(w)`,
// which make one word of a result.
#include "common/index.wgsl"

struct Params {
  n_q: u32, n_k: u32, words_q: u32, words: u32, heads_q: u32, heads_k: u32,
  length: u32, size: u32, rotary: u32, start: u32
}
@group(0) @binding(0) var<uniform> params: Params;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let w = flat_id(group, groups, local, 64u);
  if (w >= params.words) { return; }
  if (w < params.words_q) { rotate_q(w); } else { rotate_k(w - params.words_q); }
}
