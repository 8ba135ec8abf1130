// fn put4(batch: u32, m: u32, n: u32, v: vec4<f32>): y at (m, n .. n+3), n a multiple of 4, where they exist, finished by
// epilogue.
#option store whole | fours | elements
#if store == whole  // alpha is 1, nothing is added
#tensor y raw_write f32
#elif store == fours && y_type == f32
#include "matmul/common/epilogue.wgsl"
#tensor y raw_write vec4<f32>
#elif store == fours
#include "matmul/common/epilogue.wgsl"
#tensor y raw_write vec2<u32>
#else
#include "matmul/common/put.wgsl" finished=1
#end
fn put4(batch: u32, m: u32, n: u32, v: vec4<f32>) {
#if store == elements
  put2(batch, m, n, v.xy);
  put2(batch, m, n + 2u, v.zw);
#else
  if (m >= params.m || n >= params.n) { return; }
  let i = (batch * params.m + m) * params.n + n;
#if store == whole
  y[i] = v.x;
  y[i + 1u] = v.y;
  y[i + 2u] = v.z;
  y[i + 3u] = v.w;
#else
  let done = vec4<f32>(epilogue(v.x, batch, m, n), epilogue(v.y, batch, m, n + 1u), epilogue(v.z, batch, m, n + 2u),
                       epilogue(v.w, batch, m, n + 3u));
#if y_type == f32
  y[i / 4u] = done;
#else
  y[i / 4u] = vec2<u32>(pack2x16float(done.xy), pack2x16float(done.zw));
#end
#end
#end
}
