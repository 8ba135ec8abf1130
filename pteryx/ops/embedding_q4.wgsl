// y[i, e] = (code(token i, e) - zero) * scale(token, e / group). One u32 word of y per invocation.
// Host guarantees: y is [count, width]; rows of scales have `scale_row` elements.
// For an id outside the table row 0 is read.
#option bytes           // a code each, else two
#option low_first       // of two codes
#option scale_order rows | groups | blocks  // [vocabulary, groups]; the transpose; [vocabulary / 8, groups, 8]
#option has_zeros
#option arg 0..63       // of the node: the indices
#option from_end
#option reports
#tensor weight read u8 | i8
#tensor scales read f16 | f32
#tensor indices read i32
#if has_zeros
#tensor zeros read
#end
#tensor y words f16 | f32
#include "common/index.wgsl"

struct Params { count: u32, width: u32, vocabulary: u32, row_bytes: u32, group: u32, scale_row: u32, fault: u32 }
@group(0) @binding(0) var<uniform> params: Params;

#include "common/place.wgsl" name=indices

#include "common/scaled_table.wgsl"

fn zero(at: u32) -> f32 {
#if has_zeros
  return f32(load_zeros(at));
#else
  return 0.0;
#end
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let w = flat_id(group, groups, local, 64u);
  let n = params.count * params.width;
  if (w * y_lanes >= n) { return; }
  var word = 0u;
  for (var lane = 0u; lane < y_lanes; lane++) {
    let i = w * y_lanes + lane;
    if (i >= n) { break; }
    let token = u32(max(place_indices(i / params.width, i32(params.vocabulary)), 0));
    let e = i % params.width;
    let at = scale_place(token, e);
    word |= encode_y(lane, (code(token, e) - zero(at)) * load_scales(at));
  }
  y[w] = word;
}
