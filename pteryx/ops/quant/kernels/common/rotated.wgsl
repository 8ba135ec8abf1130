// put2(part, m, n, v) for columns of queries, then keys, then values: finished sums of queries and keys are turned, pair by
// pair, by the row of the tables of their position; queries go to y, keys and values to their place in the caches.
// Who includes it declares `cos_of_type`, `sin_of_type`, `y_type` and what finish.wgsl asks for.
// Host guarantees: the tables have half_size columns.
#option half_size 1..512
#option heads 1..1024
#option kv_heads 1..1024
#option capacity 1..16777216  // positions that the caches hold
#let size = half_size * 2
#let q_width = heads * size
#let kv_width = kv_heads * size
#option cache_type f16 | f32
#option live_slots
#include "quant/kernels/common/finish.wgsl"
#tensor cos_of read f16 | f32
#tensor sin_of read f16 | f32
#tensor y raw_write u32
#tensor keys raw_write u32
#tensor values raw_write u32
#include "common/live.wgsl"

fn put2(part: u32, m: u32, n: u32, v: vec2<f32>) {
  const keys_from = $(q_width)u;
  const values_from = $(q_width + kv_width)u;
  if (m >= params.m || n >= params.n) { return; }
  var pair = vec2<f32>(finish(v.x, 0u, n), finish(v.y, 0u, n + 1u));
  if (n < values_from) {
    let at = (u32(live(table_start())) + m) * $(half_size)u + n % $(size)u / 2u;
    let c = load_cos_of(at);
    let s = load_sin_of(at);
    pair = vec2<f32>(pair.x * c - pair.y * s, pair.y * c + pair.x * s);
  }
  if (n < keys_from) {
    let at = m * $(q_width)u + n;
#if y_type == f16
    y[at / 2u] = pack2x16float(pair);
#else
    y[at] = bitcast<u32>(pair.x);
    y[at + 1u] = bitcast<u32>(pair.y);
#end
    return;
  }
  let position = u32(live(first_position())) + m;
  if (position >= $(capacity)u) { return; }
  let at = position * $(kv_width)u + (n - keys_from) % $(kv_width)u;
#if cache_type == f16
  if (n < values_from) { keys[at / 2u] = pack2x16float(pair); } else { values[at / 2u] = pack2x16float(pair); }
#else
  if (n < values_from) {
    keys[at] = bitcast<u32>(pair.x);
    keys[at + 1u] = bitcast<u32>(pair.y);
  } else {
    values[at] = bitcast<u32>(pair.x);
    values[at + 1u] = bitcast<u32>(pair.y);
  }
#end
}
