// y[b, c, n] = finish(bias[c] + sum over s of sums[s, b, c, n]): the end of a tiled product whose terms were split.
// One u32 word of y per invocation. Bytes: 4 * splits + the size of y per result.
// Host guarantees: items = number of results.
#option has_bias
#option has_lo
#option has_hi
#option row_words
#option y_type f16 | f32
#tensor sums read f32
#if has_bias
#tensor bias read f16 | f32
#end
#include "conv/common/conv.wgsl"

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let word_at = flat_id(group, groups, local, 64u);
  if (word_at * y_lanes >= params.items) { return; }
  var word = 0u;
  for (var lane = 0u; lane < y_lanes; lane++) {
    let i = word_at * y_lanes + lane;
    if (i >= params.items) { break; }
    var sum = bias_at(i / params.out_size.w % (params.groups * params.out_channels));
    for (var s = 0u; s < params.splits; s++) { sum += load_sums(s * params.split_size + i); }
    word |= encode_y(lane, finish(vec4<f32>(sum)).x);
  }
  y[word_at] = word;
}
