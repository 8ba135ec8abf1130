// x that is integers already: 8-bit codes less their zero point, with `fn x_scale_of(m: u32) -> f32`. Exact in two planes.
// A prelude of qlinear_dot4.wgsl, which also has `fn codes4(m: u32, k: u32) -> vec4<f32>`.
fn eight_of(m: u32, k: u32) -> Eight {
  return Eight(vec4<i32>(codes4(m, k)), vec4<i32>(codes4(m, k + 4u)), x_scale_of(m));
}
