// x4(m, k): x at (m, k .. k+3), k a multiple of 4; 0 outside. x4_inside(m, k), of rows of whole fours: where they exist. Codes
// come less their zero point.
// Who includes it declares `x_type`.
#option x_fours  // rows are whole fours
#if !x_fours
#tensor x read f16 | f32 | i8
#elif x_type == f32
#tensor x raw vec4<f32>
#elif x_type == f16
#tensor x raw vec2<u32>
#else
#tensor x raw u32
#end

#if x_fours
fn x4_inside(m: u32, k: u32) -> vec4<f32> {
  let i = m * params.k + k;
#if x_type == f32
  return x[i / 4u];
#elif x_type == f16
  let w = x[i / 4u];
  return vec4<f32>(unpack2x16float(w.x), unpack2x16float(w.y));
#else
  return vec4<f32>((vec4<i32>(bitcast<i32>(x[i / 4u])) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u)) - x_zero();
#end
}
#end
fn x4(m: u32, k: u32) -> vec4<f32> {
  if (m >= params.m || k >= params.k) { return vec4<f32>(0.0); }
#if x_fours
  return x4_inside(m, k);
#else
  let i = m * params.k + k;
  var v = vec4<f32>(0.0);
  for (var j = 0u; j < min(4u, params.k - k); j++) {
#if x_type == i8
    v[j] = f32(load_x(i + j)) - x_zero();
#else
    v[j] = load_x(i + j);
#end
  }
  return v;
#end
}
