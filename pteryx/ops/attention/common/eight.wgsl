// eight_NAME(at, j): elements 8 j .. 8 j + 7 of the row at `at` of a tensor that is bound as vector_TYPE, as they are, with
// zeros behind the end of the row; halves_NAME(u): the same as f16, floats rounded, to the largest half at most.
#option name text
#option type f16 | f32
#if type == f16 && size % 8 == 0
alias $(name)_eight = vec4<u32>;
fn eight_$(name)(at: u32, j: u32) -> vec4<u32> { return $(name)[at / 8u + j]; }
#elif type == f16
alias $(name)_eight = vec4<u32>;
fn eight_$(name)(at: u32, j: u32) -> vec4<u32> {
  let high = $(name)[at / 4u + min(2u * j + 1u, size4 - 1u)];
  return vec4<u32>($(name)[at / 4u + 2u * j], select(vec2<u32>(0u), high, 2u * j + 1u < size4));
}
#else
struct $(name)_eight { low: vec4<f32>, high: vec4<f32> }
fn eight_$(name)(at: u32, j: u32) -> $(name)_eight {
#if size % 8 == 0
  return $(name)_eight($(name)[at / 4u + 2u * j], $(name)[at / 4u + 2u * j + 1u]);
#else
  let high = $(name)[at / 4u + min(2u * j + 1u, size4 - 1u)];
  return $(name)_eight($(name)[at / 4u + 2u * j], select(vec4<f32>(0.0), high, 2u * j + 1u < size4));
#end
}
#end
#if type == f16
fn halves_$(name)(u: $(name)_eight) -> vec4<u32> { return u; }
#else
fn halves_$(name)(u: $(name)_eight) -> vec4<u32> { return packed_halves(u.low, u.high); }
#end
