// y[i, e] = element(row of token i, e) for the tokens whose rows are in this part of the table: [first, first + rows).
// Other elements of y keep what they hold: a dispatch for each part makes the whole. One u32 word of y per invocation.
// Host guarantees: y is [count, width], a row of the table `row` elements.
// For an id outside the table row 0 is read.
#option codes none | bytes | low_first | high_first  // none: elements of y as they are
#option by_group    // scales are [groups, rows], else [rows, groups]
#option has_zeros
#option arg 0..63   // of the node: the indices
#option from_end
#option reports
#if codes == none
#tensor table raw u32
#else
#tensor table read
#end
#tensor indices read i32
#if codes != none
#tensor scales read f16 | f32
#end
#if has_zeros
#tensor zeros read
#end
#tensor y words
#require codes == none || y_type == f16 || y_type == f32
#include "common/index.wgsl"

struct Params { count: u32, width: u32, vocabulary: u32, first: u32, rows: u32, row: u32, group: u32, scale_row: u32, fault: u32 }
@group(0) @binding(0) var<uniform> params: Params;

const bits = 32u / y_lanes;

#include "common/place.wgsl" name=indices

// The bits of an element of y.
fn element(row: u32, e: u32) -> u32 {
#if codes == none
  let at = row * params.row + e;
  return extractBits(table[at / y_lanes], (at % y_lanes) * bits, bits);
#else
  let g = e / params.group;
#if by_group
  let at = g * params.scale_row + row;
#else
  let at = row * params.scale_row + g;
#end
#if codes == bytes
  let code = f32(load_table(row * params.row + e));
#elif codes == low_first
  let code = f32((u32(load_table(row * params.row + e / 2u)) >> (e % 2u * 4u)) & 15u) - 8.0;
#else
  let code = f32((u32(load_table(row * params.row + e / 2u)) >> ((e + 1u) % 2u * 4u)) & 15u) - 8.0;
#end
#if has_zeros
  let zero = f32(load_zeros(at));
#else
  let zero = 0.0;
#end
  return encode_y(0u, (code - zero) * load_scales(at));
#end
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let w = flat_id(group, groups, local, 64u);
  let n = params.count * params.width;
  if (w * y_lanes >= n) { return; }
  var word = y[w];
  for (var lane = 0u; lane < y_lanes; lane++) {
    let i = w * y_lanes + lane;
    if (i >= n) { break; }
    let token = u32(max(place_indices(i / params.width, i32(params.vocabulary)), 0));
    if (token < params.first || token - params.first >= params.rows) { continue; }
    word = insertBits(word, element(token - params.first, i % params.width), lane * bits, bits);
  }
  y[w] = word;
}
