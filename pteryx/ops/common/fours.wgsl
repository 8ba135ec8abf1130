// Four neighbours of a tensor as one load brings them, and the numbers they are. Kernels that fetch ahead keep the former:
// an invocation that widens f16 at once waits for its load there.
alias four_f16 = vec2<u32>;
alias four_f32 = vec4<f32>;
fn widen_f16(v: four_f16) -> vec4<f32> { return vec4<f32>(unpack2x16float(v.x), unpack2x16float(v.y)); }
fn widen_f32(v: four_f32) -> vec4<f32> { return v; }
