// y, and put4_y(at, j, four): elements 4 j .. 4 j + 3 of its row at `at`, as far as the row goes.
#let vectors = size % 4 == 0
#if vectors
#tensor y raw_write row_$y_type
#if y_type == f16
fn put4_y(at: u32, j: u32, four: vec4<f32>) {
  y[(at >> 2u) + j] = vec2<u32>(pack2x16float(four.xy), pack2x16float(four.zw));
}
#else
fn put4_y(at: u32, j: u32, four: vec4<f32>) { y[(at >> 2u) + j] = four; }
#end
#else
#tensor y elements f16 | f32
fn put4_y(at: u32, j: u32, four: vec4<f32>) {
  let i = 4u * j;
  store_y(at + i, four.x);
  if (i + 1u < size) { store_y(at + i + 1u, four.y); }
  if (i + 2u < size) { store_y(at + i + 2u, four.z); }
  if (i + 3u < size) { store_y(at + i + 3u, four.w); }
}
#end
