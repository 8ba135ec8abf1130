// cache[b, start + i] = x[b, i] for k and v at once. One u32 word of each cache per invocation; words that lie half
// outside keep their other half.
// Host guarantees: no word belongs to two batches. n, row and pitch count elements: the new ones of a batch, those of a
// row, and all of a batch of the cache. start is live.
// The prelude gives `write_k(batch, w)` and `write_v(batch, w)`, which make word w of a batch's new ones.
#include "common/index.wgsl"

struct Params { n: u32, start: u32, row: u32, pitch: u32, words: u32, items: u32 }
@group(0) @binding(0) var<uniform> params: Params;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = flat_id(group, groups, local, 64u);
  if (i >= params.items) { return; }
  write_k(i / params.words, i % params.words);
  write_v(i / params.words, i % params.words);
}
