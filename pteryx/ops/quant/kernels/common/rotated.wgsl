// Columns of queries, then keys, then values: finished sums of queries and keys are turned, pair by pair, by the row of the
// tables of their position; queries go to y, keys and values to their place in the caches.
// put2(part, m, n, v) takes the sums at (m, n) and (m, n+1); put_halves(m, n, low, high) those at n, n+1 and half a head on.
// finish2(m, n, v, f) and finish_halves(m, n, low, high, f) do so with what finishing(m, n) has fetched before.
// Who includes it declares `cos_of_type`, `sin_of_type`, `y_type` and what finish.wgsl asks for.
// Host guarantees: the tables have half_size columns, or, with halves, two times as many, and half_size is even.
#option places all | queries | caches  // what is stored: both, or only what goes to y, or to the caches
#option halves                // pairs are half a head apart, else neighbours
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
#if places != caches
#tensor y raw_write u32
#end
#if places != queries
#tensor keys raw_write u32
#tensor values raw_write u32
#end
#include "common/live.wgsl"
const keys_from = $(q_width)u;
const values_from = $(q_width + kv_width)u;

fn added2(n: u32) -> vec2<f32> { return vec2<f32>(added(0u, n), added(0u, n + 1u)); }

fn place2(m: u32, n: u32, pair: vec2<f32>, position: u32) {
  if (n < keys_from) {
#if places != caches
    let at = m * $(q_width)u + n;
#if y_type == f16
    y[at / 2u] = pack2x16float(pair);
#else
    y[at] = bitcast<u32>(pair.x);
    y[at + 1u] = bitcast<u32>(pair.y);
#end
#end
    return;
  }
#if places != queries
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
#end
}

#if halves
// Of columns n and n + 1, and of those half a head on.
struct Finishing {
  added_low: vec2<f32>, added_high: vec2<f32>,
  cos_low: vec2<f32>, sin_low: vec2<f32>, cos_high: vec2<f32>, sin_high: vec2<f32>,
  position: u32,
}
fn cos2(at: u32) -> vec2<f32> { return vec2<f32>(load_cos_of(at), load_cos_of(at + 1u)); }
fn sin2(at: u32) -> vec2<f32> { return vec2<f32>(load_sin_of(at), load_sin_of(at + 1u)); }
fn finishing(m: u32, n: u32) -> Finishing {
  let low = min(n, params.n - $(half_size + 2)u);
  let high = low + $(half_size)u;
  let at = (u32(live(table_start())) + m) * $(size)u + low % $(size)u;
  return Finishing(added2(low), added2(high), cos2(at), sin2(at), cos2(at + $(half_size)u), sin2(at + $(half_size)u),
                   u32(live(first_position())) + m);
}

// The column of the first of pair p.
fn column_of(p: u32) -> u32 { return p / $(half_size)u * $(size)u + p % $(half_size)u; }

fn place_halves(m: u32, n: u32, low: vec2<f32>, high: vec2<f32>, f: Finishing) {
  var a = low;
  var b = high;
  if (n < values_from) {
    a = low * f.cos_low - high * f.sin_low;
    b = high * f.cos_high + low * f.sin_high;
  }
  place2(m, n, a, f.position);
  place2(m, n + $(half_size)u, b, f.position);
}
fn finish_halves(m: u32, n: u32, low: vec2<f32>, high: vec2<f32>, f: Finishing) {
  if (m >= params.m || n >= params.n) { return; }
  place_halves(m, n, low * factor() + f.added_low, high * factor() + f.added_high, f);
}
fn put_halves(m: u32, n: u32, low: vec2<f32>, high: vec2<f32>) {
  if (m < params.m && n < params.n) { finish_halves(m, n, low, high, finishing(m, n)); }
}
#else
struct Finishing {
  added: vec2<f32>,
  turn: vec2<f32>,  // cos and sin
  position: u32,
}
fn finishing(m: u32, n: u32) -> Finishing {
  let first = min(n, params.n - 2u);
  let at = (u32(live(table_start())) + m) * $(half_size)u + first % $(size)u / 2u;
  return Finishing(added2(first), vec2<f32>(load_cos_of(at), load_sin_of(at)), u32(live(first_position())) + m);
}

fn place_turned(m: u32, n: u32, v: vec2<f32>, f: Finishing) {
  var pair = v;
  if (n < values_from) { pair = vec2<f32>(v.x * f.turn.x - v.y * f.turn.y, v.y * f.turn.x + v.x * f.turn.y); }
  place2(m, n, pair, f.position);
}
fn finish2(m: u32, n: u32, v: vec2<f32>, f: Finishing) {
  if (m >= params.m || n >= params.n) { return; }
  place_turned(m, n, v * factor() + f.added, f);
}
fn put2(part: u32, m: u32, n: u32, v: vec2<f32>) {
  if (m < params.m && n < params.n) { finish2(m, n, v, finishing(m, n)); }
}
#end
