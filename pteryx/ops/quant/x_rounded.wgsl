// x as integers of `planes` bytes: each unit of k is scaled so that its largest magnitude is `limit`, and rounded.
// A prelude of qlinear_dot4.wgsl.
const limit: f32 = f32(127u << (8u * (planes - 1u)));

fn eight_of(m: u32, k: u32) -> Eight {
  let low = x4(m, k);
  let high = x4(m, k + 4u);
  // Compared as integers, so that what is not a number counts as the largest, and shows in the result.
  let bits = max(bitcast<vec4<u32>>(low) & vec4<u32>(0x7fffffffu), bitcast<vec4<u32>>(high) & vec4<u32>(0x7fffffffu));
  var top = max(max(bits.x, bits.y), max(bits.z, bits.w));
  for (var step = 1u; step < eights; step <<= 1u) { top = max(top, subgroupShuffleXor(top, step)); }
  let largest = bitcast<f32>(top);
  // Below this the quotient would overflow, and the numbers count for nothing.
  let factor = select(limit / largest, 0.0, top < 0x0da24260u);
  return Eight(vec4<i32>(round(low * factor)), vec4<i32>(round(high * factor)), largest / limit);
}
