// load4_NAME(at, j): elements 4 j .. 4 j + 3 of the row at `at` of a tensor that is bound as row_TYPE, with zeros behind
// the end of the row. fetch4_NAME only loads them, widen4_NAME makes numbers of that.
#include "common/fours.wgsl"
#option name text
#option type f16 | f32
#let vectors = size % 4 == 0
#if vectors
alias $(name)_four = four_$type;
fn fetch4_$(name)(at: u32, j: u32) -> four_$type { return $(name)[(at >> 2u) + j]; }
fn widen4_$(name)(v: four_$type) -> vec4<f32> { return widen_$(type)(v); }
fn load4_$(name)(at: u32, j: u32) -> vec4<f32> { return widen_$(type)($(name)[(at >> 2u) + j]); }
#else
#if type == f16
fn load_$(name)(i: u32) -> f32 {
  let pair = unpack2x16float($(name)[i >> 1u]);
  return select(pair.x, pair.y, (i & 1u) == 1u);
}
#else
fn load_$(name)(i: u32) -> f32 { return $(name)[i]; }
#end
fn load4_$(name)(at: u32, j: u32) -> vec4<f32> {
  let i = at + 4u * j;
  let last = at + size - 1u;
  let v = vec4<f32>(load_$(name)(i), load_$(name)(min(i + 1u, last)), load_$(name)(min(i + 2u, last)),
                    load_$(name)(min(i + 3u, last)));
  return select(vec4<f32>(0.0), v, vec4<u32>(i) + vec4<u32>(0u, 1u, 2u, 3u) <= vec4<u32>(last));
}
alias $(name)_four = four_f32;
fn fetch4_$(name)(at: u32, j: u32) -> four_f32 { return load4_$(name)(at, j); }
fn widen4_$(name)(v: four_f32) -> vec4<f32> { return v; }
#end
