// put_gated8(m, n, gate, through): y[m, n .. n+7] = silu(gate) * through, n a multiple of 8, where it exists; rows of y are
// params.n / 2. Who includes it declares `y_type` and, with has_bias, `bias_type`.
#option has_bias
#if has_bias
#tensor bias read f16 | f32
fn bias4(n: u32) -> vec4<f32> { return vec4<f32>(load_bias(n), load_bias(n + 1u), load_bias(n + 2u), load_bias(n + 3u)); }
#end
#if y_type == f32
#tensor y raw_write vec4f
#else
#tensor y raw_write vec4u
#end

fn gated4(n: u32, gate: vec4<f32>, through: vec4<f32>) -> vec4<f32> {
#if has_bias
  let g = gate * factor() + bias4(n);
  let v = through * factor() + bias4(n + params.n / 2u);
#else
  let g = gate * factor();
  let v = through * factor();
#end
  return g / (1.0 + exp(-g)) * v;
}
fn put_gated8(m: u32, n: u32, gate0: vec4<f32>, gate1: vec4<f32>, through0: vec4<f32>, through1: vec4<f32>) {
  let half = params.n / 2u;
  if (m >= params.m || n >= half) { return; }
  let low = gated4(n, gate0, through0);
  let high = gated4(n + 4u, gate1, through1);
#if y_type == f32
  y[(m * half + n) / 4u] = low;
  y[(m * half + n) / 4u + 1u] = high;
#else
  let most = vec4<f32>(65504.0);
  let a = clamp(low, -most, most);
  let b = clamp(high, -most, most);
  y[(m * half + n) / 8u] = vec4<u32>(pack2x16float(a.xy), pack2x16float(a.zw), pack2x16float(b.xy), pack2x16float(b.zw));
#end
}
