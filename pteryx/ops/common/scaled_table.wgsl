// code(token, e) and the place of its scale in a table of codes with a scale for each group of a row.
// Host guarantees: params has row_bytes, group and scale_row; rows of scales have `scale_row` elements; token < vocabulary.
#option bytes      // a code each, else two
#option low_first  // of two codes
#option scale_order rows | groups | blocks  // [vocabulary, groups]; the transpose; [vocabulary / 8, groups, 8]
fn code(token: u32, e: u32) -> f32 {
#if bytes
  return f32(load_weight(token * params.row_bytes + e));
#else
  let byte = u32(load_weight(token * params.row_bytes + e / 2u));
#if low_first
  let nibble = e % 2u;
#else
  let nibble = (e + 1u) % 2u;
#end
  return f32((byte >> (nibble * 4u)) & 15u) - 8.0;
#end
}
fn scale_place(token: u32, e: u32) -> u32 {
  let g = e / params.group;
#if scale_order == rows
  return token * params.scale_row + g;
#elif scale_order == groups
  return g * params.scale_row + token;
#else
  return token / 8u * params.scale_row + g * 8u + token % 8u;
#end
}
