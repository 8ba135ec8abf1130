// Kernels of 1 at stride 1 without padding: per image and group y [OC, N] = weight [OC, IC] * x [IC, N]. One tile per
// workgroup.
// Roofline: flops = 2 OC N IC, bytes = x + y + weight; at IC = OC = C that is C / 4 flops a byte of f32, so memory
// bound below a few dozen channels and bound by arithmetic above. The tile reads x once per 64 (32) output channels.
// Host guarantees: out_size = in_size; items = tiles * splits * batch * groups.
#option has_bias
#option has_lo
#option has_hi
#option row_words
#option y_type f16 | f32
#option quads 1..2   // tiles of 32 or 64
#option split        // y are the sums of each split
#option whole_tiles
#tensor x read f16 | f32
#tensor weight read f16 | f32
#if has_bias
#tensor bias read f16 | f32
#end
#include "conv/common/conv.wgsl"
#include "conv/common/tile.wgsl"

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = flat_group(group, groups);
  if (index >= params.items) { return; }
  var sums: Sums;
  let tile = locate(index);
  let begin = tile.split * params.split_terms;
  let end = min(begin + params.split_terms, params.in_channels);
  let positions = params.out_size.w;
  let first = (tile.image * params.groups + tile.g) * params.in_channels;
  let n = tile.n + local % b_row * 4u;
  for (var k = begin; k < end; k += tile_k) {
    workgroupBarrier();
    fill_a(tile, k, end, local);
    for (var i = local / b_row; i < tile_k; i += 64u / b_row) {
      var v = vec4<f32>();
      if (k + i < end) {
        let at = (first + k + i) * positions + n;
        if (n < positions) { v.x = load_x(at); }
        if (n + 1u < positions) { v.y = load_x(at + 1u); }
        if (n + 2u < positions) { v.z = load_x(at + 2u); }
        if (n + 3u < positions) { v.w = load_x(at + 3u); }
      }
      tile_b[i * b_row + local % b_row] = v;
    }
    workgroupBarrier();
    multiply(&sums, local, min(tile_k, end - k));
  }
  finish_tile(&sums, tile, local);
}
