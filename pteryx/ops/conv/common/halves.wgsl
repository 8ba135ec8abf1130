// Eight numbers of x, f32 or f16, as subgroup matrices want them. What f16 cannot hold becomes the largest it can.
#option x_type f16 | f32
fn halves(low: vec4<f32>, high: vec4<f32>) -> vec4<u32> {
#if x_type == f32
  let most = vec4<f32>(65504.0);
  let a = clamp(low, -most, most);
  let b = clamp(high, -most, most);
#else
  let a = low;
  let b = high;
#end
  return vec4<u32>(pack2x16float(a.xy), pack2x16float(a.zw), pack2x16float(b.xy), pack2x16float(b.zw));
}
