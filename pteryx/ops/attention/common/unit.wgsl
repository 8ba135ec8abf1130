// A tensor by units of $unit elements, bound as vector_TYPE: read_NAME(i) gives unit i as it is, low_NAME and, of units of
// eight, high_NAME four of its elements as numbers.
#option name text
#option type f16 | f32
#if type == f16
alias $(name)_unit = vector_f16;
fn read_$(name)(i: u32) -> $(name)_unit { return $(name)[i]; }
fn low_$(name)(u: $(name)_unit) -> vec4<f32> { return vec4<f32>(unpack2x16float(u.x), unpack2x16float(u.y)); }
#if unit == 8
fn high_$(name)(u: $(name)_unit) -> vec4<f32> { return vec4<f32>(unpack2x16float(u.z), unpack2x16float(u.w)); }
#end
#elif unit == 8
struct $(name)_unit { low: vec4<f32>, high: vec4<f32> }
fn read_$(name)(i: u32) -> $(name)_unit { return $(name)_unit($(name)[2u * i], $(name)[2u * i + 1u]); }
fn low_$(name)(u: $(name)_unit) -> vec4<f32> { return u.low; }
fn high_$(name)(u: $(name)_unit) -> vec4<f32> { return u.high; }
#else
alias $(name)_unit = vec4<f32>;
fn read_$(name)(i: u32) -> $(name)_unit { return $(name)[i]; }
fn low_$(name)(u: $(name)_unit) -> vec4<f32> { return u; }
#end
