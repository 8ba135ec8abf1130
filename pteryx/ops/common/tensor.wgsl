// One tensor, bound as u32 words: element i is load_NAME(i), as i32 or f32. What is written goes out in whole words, of
// NAME_lanes elements that encode_NAME(lane, value) puts in their places, or element by element with store_NAME(i, value).
#option name text
#option binding 1..32
#option access read | words | elements
#option type bool | u8 | i8 | i32 | f16 | f32
#if access == read
@group(0) @binding($binding) var<storage, read> $name: array<u32>;
#else
@group(0) @binding($binding) var<storage, read_write> $name: array<u32>;
#end
#if type == f16 || type == f32
#let value = f32
#else
#let value = i32
#end
alias $(name)_t = $value;
#if access == read
#if type == f32 || type == i32
fn load_$(name)(i: u32) -> $value { return bitcast<$value>($(name)[i]); }
#elif type == f16
fn load_$(name)(i: u32) -> f32 {
  let pair = unpack2x16float($(name)[i >> 1u]);
  return select(pair.x, pair.y, (i & 1u) == 1u);
}
#elif type == i8
fn load_$(name)(i: u32) -> i32 { return extractBits(bitcast<i32>($(name)[i >> 2u]), (i & 3u) * 8u, 8u); }
#else
fn load_$(name)(i: u32) -> i32 { return i32(extractBits($(name)[i >> 2u], (i & 3u) * 8u, 8u)); }
#end
#elif access == elements
fn store_$(name)(i: u32, v: $value) { $(name)[i] = bitcast<u32>(v); }
#elif type == f32 || type == i32
const $(name)_lanes: u32 = 1u;
fn encode_$(name)(lane: u32, v: $value) -> u32 { return bitcast<u32>(v); }
#elif type == f16
const $(name)_lanes: u32 = 2u;
fn encode_$(name)(lane: u32, v: f32) -> u32 { return pack2x16float(vec2<f32>(v, 0.0)) << (lane * 16u); }
#elif type == bool
const $(name)_lanes: u32 = 4u;
fn encode_$(name)(lane: u32, v: i32) -> u32 { return select(0u, 1u, v != 0) << (lane * 8u); }
#else
const $(name)_lanes: u32 = 4u;
fn encode_$(name)(lane: u32, v: i32) -> u32 { return (bitcast<u32>(v) & 0xffu) << (lane * 8u); }
#end
