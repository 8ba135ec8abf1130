// y[r, w] = bytes 4w .. 4w+3 of row r of source, 0 behind its from_bytes:
// rows of bytes, laid out so that each starts at a multiple of 16 bytes; the rest of a row is 0. With `swap` the two
// nibbles of every byte change places. One invocation per word of y.
// Host guarantees: source has rows * from_bytes bytes, y rows * to_words words.
#tensor source raw u32
#tensor y raw_write u32
#include "common/index.wgsl"

struct Params { rows: u32, from_bytes: u32, to_words: u32, swap: u32 }
@group(0) @binding(0) var<uniform> params: Params;

// The word at any byte; bytes past the end of the buffer come as they may.
fn word_at(byte: u32) -> u32 {
  let at = byte / 4u;
  let shift = byte % 4u * 8u;
  if (shift == 0u) { return source[at]; }
  let next = source[min(at + 1u, arrayLength(&source) - 1u)];
  return (source[at] >> shift) | (next << (32u - shift));
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = flat_id(group, groups, local, 64u);
  if (i >= params.rows * params.to_words) { return; }
  let first = i % params.to_words * 4u;
  if (first >= params.from_bytes) {
    y[i] = 0u;
    return;
  }
  var word = word_at(i / params.to_words * params.from_bytes + first);
  let have = params.from_bytes - first;
  if (have < 4u) { word &= (1u << (have * 8u)) - 1u; }
  if (params.swap != 0u) { word = ((word & 0x0f0f0f0fu) << 4u) | ((word >> 4u) & 0x0f0f0f0fu); }
  y[i] = word;
}
