// put2(part, m, n, v) for columns of queries, then keys, then values: finished sums of queries and keys are turned, pair by
// pair, by the row of the tables of their position; queries go to y, keys and values to their place in the caches.
// finish2(m, n, v, f) does so with what finishing(m, n) has fetched before.
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

struct Finishing {
  added: vec2<f32>,
  turn: vec2<f32>,  // cos and sin
  position: u32,
}
fn finishing(m: u32, n: u32) -> Finishing {
  let first = min(n, params.n - 2u);
  let at = (u32(live(table_start())) + m) * $(half_size)u + first % $(size)u / 2u;
  return Finishing(vec2<f32>(added(0u, first), added(0u, first + 1u)), vec2<f32>(load_cos_of(at), load_sin_of(at)),
                   u32(live(first_position())) + m);
}
fn put2(part: u32, m: u32, n: u32, v: vec2<f32>) {
  if (m < params.m && n < params.n) { finish2(m, n, v, finishing(m, n)); }
}
fn finish2(m: u32, n: u32, v: vec2<f32>, f: Finishing) {
  const keys_from = $(q_width)u;
  const values_from = $(q_width + kv_width)u;
  if (m >= params.m || n >= params.n) { return; }
  var pair = v * factor() + f.added;
  if (n < values_from) {
    pair = vec2<f32>(pair.x * f.turn.x - pair.y * f.turn.y, pair.y * f.turn.x + pair.x * f.turn.y);
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
  if (f.position >= $(capacity)u) { return; }
  let at = f.position * $(kv_width)u + (n - keys_from) % $(kv_width)u;
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
