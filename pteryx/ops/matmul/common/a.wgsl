// fn a4(base: u32, m: u32, k: u32) -> vec4<f32>: a at (m, k .. k+3), 0 outside. In one load where groups of four start at
// multiples of four in memory.
#option a_fours
#if !a_fours
#tensor a read f16 | f32
#elif a_type == f16
#tensor a raw vec2<u32>
#else
#tensor a raw vec4<f32>
#end
fn a4(base: u32, m: u32, k: u32) -> vec4<f32> {
  if (m >= params.m || k >= params.k) { return vec4<f32>(0.0); }
  let at = base + m * params.a_row;
#if !a_fours
  var v = vec4<f32>(0.0);
  for (var j = 0u; j < min(4u, params.k - k); j++) { v[j] = load_a(at + (k + j) * params.a_column); }
  return v;
#elif a_type == f16
  let w = a[(at + k) / 4u];
  return vec4<f32>(unpack2x16float(w.x), unpack2x16float(w.y));
#else
  return a[(at + k) / 4u];
#end
}
