// Eight numbers of x, f32 or f16, as subgroup matrices want them. What f16 cannot hold becomes the largest it can.
#option x_type f16 | f32
fn halves(low: vec4<$x_type>, high: vec4<$x_type>) -> vec4<u32> {
#if x_type == f32
  let most = vec4<f32>(65504.0);
  let a = clamp(low, -most, most);
  let b = clamp(high, -most, most);
  return vec4<u32>(pack2x16float(a.xy), pack2x16float(a.zw), pack2x16float(b.xy), pack2x16float(b.zw));
#else
  let a = vec4<f32>(low);
  let b = vec4<f32>(high);
  return vec4<u32>(pack2x16float(a.xy), pack2x16float(a.zw), pack2x16float(b.xy), pack2x16float(b.zw));
#end
}
