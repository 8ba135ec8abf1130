// b, four neighbours at a time, 0 outside:
//   fn b4(base: u32, n: u32, k: u32) -> vec4<f32>   at (k .. k+3, n) where along_k, else
//   fn b4(base: u32, k: u32, n: u32) -> vec4<f32>   at (k, n .. n+3)
// In one load where groups of four start at multiples of four in memory; in eights, which are f16, there is no b4.
// fetch_b4 only loads them, widen_b4 makes numbers of that.
#include "common/fours.wgsl"
#option along_k
#option b_load elements | fours | eights
#if b_load == eights
#tensor b raw vec4<u32>
#elif b_load == fours
#tensor b raw four_$b_type
alias b_four = four_$b_type;
fn widen_b4(v: b_four) -> vec4<f32> { return widen_$(b_type)(v); }
#else
#tensor b read f16 | f32
alias b_four = four_f32;
fn widen_b4(v: b_four) -> vec4<f32> { return v; }
#end
#if along_k
#let outer = n
#let inner = k
#let outer_stride = b_column
#let inner_stride = b_row
#else
#let outer = k
#let inner = n
#let outer_stride = b_row
#let inner_stride = b_column
#end
#if b_load == eights
fn b_eight(base: u32, $outer: u32, $inner: u32) -> vec4<u32> { return b[(base + $outer * params.$outer_stride + $inner) / 8u]; }
#else
fn fetch_b4(base: u32, $outer: u32, $inner: u32) -> b_four {
  if ($outer >= params.$outer || $inner >= params.$inner) { return b_four(); }
  let at = base + $outer * params.$outer_stride;
#if b_load == fours
  return b[(at + $inner) / 4u];
#else
  var v = vec4<f32>(0.0);
  for (var j = 0u; j < min(4u, params.$inner - $inner); j++) { v[j] = load_b(at + ($inner + j) * params.$inner_stride); }
  return v;
#end
}
fn b4(base: u32, $outer: u32, $inner: u32) -> vec4<f32> { return widen_b4(fetch_b4(base, $outer, $inner)); }
#end
