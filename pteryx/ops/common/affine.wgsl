// A normalised value of channel c, times its weight and plus its bias where there are some.
#option has_weight
#option has_bias
fn affine(v: f32, c: u32) -> f32 {
#if has_weight && has_bias
  return v * load_weight(c) + load_bias(c);
#elif has_weight
  return v * load_weight(c);
#elif has_bias
  return v + load_bias(c);
#else
  return v;
#end
}
