// put4(part, m, n, v): as rotated.wgsl, four columns at a time. Host guarantees: heads have whole fours of columns, n is a
// multiple of 4. Who includes it declares `cos_of_type`, `sin_of_type`, `y_type` and, with has_bias, `bias_type`.
#option half_size 2..512
#option heads 1..1024
#option kv_heads 1..1024
#option capacity 1..16777216  // positions that the caches hold
#let size = half_size * 2
#let q_width = heads * size
#let kv_width = kv_heads * size
#option cache_type f16 | f32
#option live_slots
#option has_bias
#if has_bias
#tensor bias read f16 | f32
#end
#tensor cos_of read f16 | f32
#tensor sin_of read f16 | f32
#if y_type == f32
#tensor y raw_write vec4f
fn encoded_y(v: vec4<f32>) -> vec4<f32> { return v; }
#else
#tensor y raw_write vec2u
fn encoded_y(v: vec4<f32>) -> vec2<u32> { return vec2<u32>(pack2x16float(v.xy), pack2x16float(v.zw)); }
#end
#if cache_type == f32
#tensor keys raw_write vec4f
#tensor values raw_write vec4f
fn encoded_row(v: vec4<f32>) -> vec4<f32> { return v; }
#else
#tensor keys raw_write vec2u
#tensor values raw_write vec2u
fn encoded_row(v: vec4<f32>) -> vec2<u32> { return vec2<u32>(pack2x16float(v.xy), pack2x16float(v.zw)); }
#end
#include "common/live.wgsl"

fn put4(part: u32, m: u32, n: u32, v: vec4<f32>) {
  const keys_from = $(q_width)u;
  const values_from = $(q_width + kv_width)u;
  if (m >= params.m || n >= params.n) { return; }
  var four = v * factor();
#if has_bias
  four += vec4<f32>(load_bias(n), load_bias(n + 1u), load_bias(n + 2u), load_bias(n + 3u));
#end
  if (n < values_from) {
    let at = (u32(live(table_start())) + m) * $(half_size)u + n % $(size)u / 2u;
    let c = vec2<f32>(load_cos_of(at), load_cos_of(at + 1u));
    let s = vec2<f32>(load_sin_of(at), load_sin_of(at + 1u));
    four = four * c.xxyy + four.yxwz * vec4<f32>(-s.x, s.x, -s.y, s.y);
  }
  if (n < keys_from) {
    y[(m * $(q_width)u + n) / 4u] = encoded_y(four);
    return;
  }
  let position = u32(live(first_position())) + m;
  if (position >= $(capacity)u) { return; }
  let at = (position * $(kv_width)u + (n - keys_from) % $(kv_width)u) / 4u;
  if (n < values_from) { keys[at] = encoded_row(four); } else { values[at] = encoded_row(four); }
}
