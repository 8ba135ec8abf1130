// fn a4(base: u32, m: u32, k: u32) -> vec4<f32>: a at (m, k .. k+3), 0 outside. In one load where groups of four start at
// multiples of four in memory. fetch_a4 only loads them, widen_a4 makes numbers of that.
#include "common/fours.wgsl"
#option a_fours
#if a_fours
#tensor a raw four_$a_type
alias a_four = four_$a_type;
fn widen_a4(v: a_four) -> vec4<f32> { return widen_$(a_type)(v); }
#else
#tensor a read f16 | f32
alias a_four = four_f32;
fn widen_a4(v: a_four) -> vec4<f32> { return v; }
#end
fn fetch_a4(base: u32, m: u32, k: u32) -> a_four {
  if (m >= params.m || k >= params.k) { return a_four(); }
  let at = base + m * params.a_row;
#if a_fours
  return a[(at + k) / 4u];
#else
  var v = vec4<f32>(0.0);
  for (var j = 0u; j < min(4u, params.k - k); j++) { v[j] = load_a(at + (k + j) * params.a_column); }
  return v;
#end
}
fn a4(base: u32, m: u32, k: u32) -> vec4<f32> { return widen_a4(fetch_a4(base, m, k)); }
