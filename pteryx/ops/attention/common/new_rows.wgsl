// New rows of a cache, read where they are: NAME_rows. kept_NAME(v): four numbers as the cache will hold them;
// write_NAME(i, u): puts a unit of the new rows into unit i of the cache.
#option name text
#option type f16 | f32       // of the new rows
#option cache_type f16 | f32
#include "attention/common/unit.wgsl" name=$(name)_rows type=$type
#if cache_type == f16
fn halves_of_$(name)(v: vec4<f32>) -> vec2<u32> { return vec2<u32>(pack2x16float(v.xy), pack2x16float(v.zw)); }
#end
fn kept_$(name)(v: vec4<f32>) -> vec4<f32> {
#if cache_type == f16 && type == f32
  let halves = halves_of_$(name)(v);
  return vec4<f32>(unpack2x16float(halves.x), unpack2x16float(halves.y));
#else
  return v;
#end
}
fn write_$(name)(i: u32, u: $(name)_rows_unit) {
#if cache_type == f16 && unit == 8
  $(name)[i] = vec4<u32>(halves_of_$(name)(low_$(name)_rows(u)), halves_of_$(name)(high_$(name)_rows(u)));
#elif cache_type == f16
  $(name)[i] = halves_of_$(name)(low_$(name)_rows(u));
#elif unit == 8
  $(name)[2u * i] = low_$(name)_rows(u);
  $(name)[2u * i + 1u] = high_$(name)_rows(u);
#else
  $(name)[i] = low_$(name)_rows(u);
#end
}
