// cache[b, start + i] = x[b, i] for k alone or k and v at once. One u32 word of each cache per invocation.
// Host guarantees: no word belongs to two batches. n, row and pitch count elements: the new ones of a batch, those of a
// row, and all of a batch of the cache. start is live.
#option caches one | both
#option live_slots
#tensor k read f16 | f32
#tensor k_cache words f16 | f32
#if caches == both
#tensor v read f16 | f32
#tensor v_cache words f16 | f32
#end
#include "common/index.wgsl"
#include "common/live.wgsl"

struct Params { n: u32, start: u32, row: u32, pitch: u32, words: u32, items: u32 }
@group(0) @binding(0) var<uniform> params: Params;

#include "attention/common/cache_word.wgsl" which=k
#if caches == both
#include "attention/common/cache_word.wgsl" which=v
#end

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = flat_id(group, groups, local, 64u);
  if (i >= params.items) { return; }
  write_k(i / params.words, i % params.words);
#if caches == both
  write_v(i / params.words, i % params.words);
#end
}
