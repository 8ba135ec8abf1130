// fn put2(batch: u32, m: u32, n: u32, v: vec2<f32>): y at (m, n) and (m, n+1), n even, where they exist. Finished by
// epilogue, or, where k is cut, parts of sums as they are. Pairs of halves are one word where every row has whole words.
#option finished
#include "matmul/common/epilogue.wgsl"
#require finished || (!has_add && activation == none && !has_scale && !has_residual && y_type == f32)
#include "common/row_words.wgsl"
fn put2(batch: u32, m: u32, n: u32, v: vec2<f32>) {
  if (m >= params.m || n >= params.n) { return; }
  let i = (batch * params.m + m) * params.n + n;
#if !finished
  y[i] = bitcast<u32>(v.x);
  if (n + 1u < params.n) { y[i + 1u] = bitcast<u32>(v.y); }
#elif row_words && y_type == f16
  y[i / 2u] = pack2x16float(vec2<f32>(epilogue(v.x, batch, m, n), epilogue(v.y, batch, m, n + 1u)));
#else
  y[i] = bitcast<u32>(epilogue(v.x, batch, m, n));
  if (n + 1u < params.n) { y[i + 1u] = bitcast<u32>(epilogue(v.y, batch, m, n + 1u)); }
#end
}
