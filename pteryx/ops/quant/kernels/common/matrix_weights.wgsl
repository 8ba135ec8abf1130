// The weights as subgroup_matrix_tile.wgsl and f16_tile.wgsl read their operand b. Codes become f16 by setting the exponent
// to that of 1024 and taking away 1024 and their offset, two at a time: those that a mask leaves in the halves of a word. These
// are put in order, unless x is interleaved: has 0 4 1 5 2 6 3 7 of every eight of k. Where a unit has several scales its codes
// are scaled one by one.
// What is outside repeats the last unit and column.
// Where `paired_side` is set, columns come in the order of a product that multiplies them pairwise: so many of the first half
// of n, then as many of the second, and so on.
#option n_whole            // n is whole tiles
#option k_whole            // k is whole steps
#option row_units 1..65536  // vectors in a row of weights
#option group 1..1048576   // of k for each scale
#option half_arithmetic    // the device computes with f16, and the compiler takes a word for two of them
#option paired_side 0..32
#option interleaved
#include "quant/kernels/common/weights.wgsl"
#if half_arithmetic
#enable f16
alias real = f16;
#else
alias real = f32;
#end

fn column_of(n: u32) -> u32 {
#if paired_side > 0
  let column = n / $(2 * paired_side)u * $(paired_side)u + n % $(paired_side)u + n / $(paired_side)u % 2u * (params.n / 2u);
#else
  let column = n;
#end
#if n_whole
  return column;
#else
  return min(column, params.n - 1u);
#end
}
fn unit_at(k: u32) -> u32 {
#if k_whole
  return k / unit;
#else
  return min(k / unit, $(row_units - 1)u);
#end
}
fn raw_b(batch: u32, n: u32, k: u32) -> vec4<u32> {
  let column = column_of(n);
  let w = weight[column * $(row_units)u + unit_at(k)];
#if scale_for == unit
  return w;
#else
  let first = unit_at(k) * unit;
  let j = k % unit / 4u;
  let low = quad(w, j, column, first);
  let high = quad(w, j + 1u, column, first);
  return vec4<u32>(pack2x16float(low.xy), pack2x16float(low.zw), pack2x16float(high.xy), pack2x16float(high.zw));
#end
}
#if scale_for == unit
fn scale_at(n: u32, k: u32) -> u32 {
  let column = column_of(n);
#if scale_order != flat
#if k_whole
  let g = k / $(group)u;
#else
  let g = min(k, params.k - 1u) / $(group)u;
#end
#end
#if scale_order == flat
  return column;
#elif scale_order == groups
  return g * params.scale_row + column;
#else
  return column / 8u * params.scale_row + g * 8u + column % 8u;
#end
}
#if scales_type == f32
fn number(raw: u32, n: u32, k: u32) -> real { return real(bitcast<f32>(raw)); }
#else
fn number(raw: u32, n: u32, k: u32) -> real {
  let pair = unpack2x16float(raw);
  return real(select(pair.x, pair.y, scale_at(n, k) % 2u == 1u));
}
#end
fn word_at(n: u32, k: u32) -> u32 {
#if scales_type == f32
  return scale_at(n, k);
#else
  return scale_at(n, k) / 2u;
#end
}
// A scale, and what code 0 stands for.
#if has_minimums
alias RawScale = vec2<u32>;
alias Scale = vec2<real>;
fn raw_scale_b(n: u32, k: u32) -> RawScale { return vec2<u32>(scales[word_at(n, k)], minimums[word_at(n, k)]); }
fn scale_b(raw: RawScale, n: u32, k: u32) -> Scale { return Scale(number(raw.x, n, k), number(raw.y, n, k)); }
fn sixteenth_of(s: Scale) -> Scale { return s * Scale(0.0625, 1.0); }
fn weights2(codes: vec2<real>, s: Scale) -> vec2<real> { return codes * s.x + s.y; }
#else
alias RawScale = u32;
alias Scale = real;
fn raw_scale_b(n: u32, k: u32) -> RawScale { return scales[word_at(n, k)]; }
fn scale_b(raw: RawScale, n: u32, k: u32) -> Scale { return number(raw, n, k); }
fn sixteenth_of(s: Scale) -> Scale { return s * 0.0625; }
fn weights2(codes: vec2<real>, s: Scale) -> vec2<real> { return codes * s; }
#end
// Two codes in the low bits of halves, each less `offset`, as weights.
#if half_arithmetic
fn scaled_pair(bits: u32, offset: real, scale: Scale) -> vec2<f16> {
  return weights2(bitcast<vec2<f16>>(bits | 0x64006400u) - vec2<f16>(1024.0h + offset), scale);
}
fn word_of(a: f16, b: f16) -> u32 { return bitcast<u32>(vec2<f16>(a, b)); }
#else
fn scaled_pair(bits: u32, offset: real, scale: Scale) -> vec2<f32> {
  return weights2(vec2<f32>(vec2<u32>(bits & 0xffffu, bits >> 16u)) - vec2<f32>(offset), scale);
}
fn word_of(a: f32, b: f32) -> u32 { return pack2x16float(vec2<f32>(a, b)); }
#end
#if codes == bytes
fn expand_b(first: u32, second: u32, scale: Scale) -> vec4<u32> {
  let low = first ^ 0x80808080u;
  let high = second ^ 0x80808080u;
  let c02 = scaled_pair(low & 0x00ff00ffu, 128.0, scale);
  let c13 = scaled_pair((low >> 8u) & 0x00ff00ffu, 128.0, scale);
  let c46 = scaled_pair(high & 0x00ff00ffu, 128.0, scale);
  let c57 = scaled_pair((high >> 8u) & 0x00ff00ffu, 128.0, scale);
  return vec4<u32>(word_of(c02.x, c13.x), word_of(c02.y, c13.y), word_of(c46.x, c57.x), word_of(c46.y, c57.y));
}
#else
fn expand_b(word: u32, scale: Scale) -> vec4<u32> {
  let high = word >> 8u;
  let sixteenth = sixteenth_of(scale);
  let c04 = scaled_pair(word & 0x000f000fu, 8.0, scale);
  let c15 = scaled_pair(word & 0x00f000f0u, 128.0, sixteenth);
  let c26 = scaled_pair(high & 0x000f000fu, 8.0, scale);
  let c37 = scaled_pair(high & 0x00f000f0u, 128.0, sixteenth);
#if interleaved
  return vec4<u32>(word_of(c04.x, c04.y), word_of(c15.x, c15.y), word_of(c26.x, c26.y), word_of(c37.x, c37.y));
#else
  return vec4<u32>(word_of(c04.x, c15.x), word_of(c26.x, c37.x), word_of(c04.y, c15.y), word_of(c26.y, c37.y));
#end
}
#end
#end
