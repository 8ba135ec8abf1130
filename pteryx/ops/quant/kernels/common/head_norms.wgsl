// norm2(n): the factors by which columns n and n + 1 of queries and keys are multiplied after they were divided by the RMS of
// their head; 1 for values. Behind rotated.wgsl.
#option places all | queries | caches
#if places != caches
#tensor norm_q read f16 | f32
#end
#if places != queries
#tensor norm_k read f16 | f32
#end

fn norm2(n: u32) -> vec2<f32> {
  let d = n % $(half_size * 2)u;
#if places == queries
  return vec2<f32>(load_norm_q(d), load_norm_q(d + 1u));
#else
  if (n >= values_from) { return vec2<f32>(1.0); }
#if places == all
  if (n < keys_from) { return vec2<f32>(load_norm_q(d), load_norm_q(d + 1u)); }
#end
  return vec2<f32>(load_norm_k(d), load_norm_k(d + 1u));
#end
}
// One over the RMS of a head of that sum of squares, which n is a column of.
fn head_scale(squares: f32, n: u32) -> f32 {
  return select(inverseSqrt(squares / $(half_size * 2).0 + head_eps()), 1.0, n >= values_from);
}
