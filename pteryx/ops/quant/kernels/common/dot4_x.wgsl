// x of qlinear_dot4.wgsl, in workgroup memory or for it: integers of `planes` signed bytes and a scale for each unit of k.
//   load_x8(item, first_unit), store_x(item, eight, inside)  eight of x fetched; rounded and put there
//   norm_of(m)                                               one over the RMS of row m, where x_form is norm
// Who includes it has the options and constants of that file.
#option to_storage  // they are bound as tensors
// [row][plane][pair of eights][unit][eight of the pair]: first and second codes of an eight.
#if to_storage
#tensor x_bytes raw_write vec2<u32>
#tensor x_scale raw_write vec2<f32>
#if planes == 3
#tensor x_high raw_write i32
#end
#else
var<workgroup> x_bytes: array<vec2<u32>, $(rows * planes * wide * eights)>;
// The scale of a unit, and what code 0 adds to its product.
var<workgroup> x_scale: array<vec2<f32>, $(rows * wide)>;
#if planes == 3
var<workgroup> x_high: array<i32, $(rows * wide)>;  // the same of the third plane
#end
#end
#if x_form == norm
var<workgroup> x_squares: array<f32, $(rows * wide * eights / lanes)>;
#end

fn packed(b: vec4<u32>) -> u32 {
  return (b.x & 0xffu) | ((b.y & 0xffu) << 8u) | ((b.z & 0xffu) << 16u) | (b.w << 24u);
}
fn sum_of_bytes(word: u32) -> i32 { return dot4I8Packed(word, 0x01010101u); }

// Eight of x.
struct Eight {
  low: vec4<f32>, high: vec4<f32>,
#if x_form == norm
  norm_low: vec4<f32>, norm_high: vec4<f32>,
#end
}

fn load_x8(item: u32, first_unit: u32) -> Eight {
  let m = item / (eights * wide);
  let k = (first_unit + item / eights % wide) * unit + item % eights * 8u;
#if k_whole && x_form == norm
  return Eight(x4_inside(m, k), x4_inside(m, k + 4u), norm4(k), norm4(k + 4u));
#elif k_whole
  return Eight(x4_inside(m, k), x4_inside(m, k + 4u));
#elif x_form == norm
  return Eight(x4(m, k), x4(m, k + 4u), norm4(k), norm4(k + 4u));
#else
  return Eight(x4(m, k), x4(m, k + 4u));
#end
}

// Rounds eight of x, of a unit that as many neighbours have as it has eights. Every invocation calls it.
fn store_x(item: u32, v: Eight, inside: bool) {
  let e = item % eights;
  let u = item / eights % wide;
  let m = item / (eights * wide);
  var low = v.low;
  var high = v.high;
#if x_form == norm
  var squares = dot(low, low) + dot(high, high);
  squares += subgroupShuffleXor(squares, 1u);
  squares += subgroupShuffleXor(squares, 2u);
#if lanes > 4
  squares += subgroupShuffleXor(squares, 4u);
#end
#if lanes > 8
  squares += subgroupShuffleXor(squares, 8u);
#end
#if lanes > 16
  squares += subgroupShuffleXor(squares, 16u);
#end
#if passes
  if (inside && item % lanes == 0u) { x_squares[item / lanes] += squares; }
#else
  if (inside && item % lanes == 0u) { x_squares[item / lanes] = squares; }
#end
  low *= v.norm_low;
  high *= v.norm_high;
#end
#if x_form == whole
  let size = 1.0;
  const factor = 1.0;
#elif x_form == rounded
  let size = load_row_scale(m);
  const factor = 1.0;
  let zero = f32(load_row_zero(m));
  low = clamp(round(low * (1.0 / size)) + zero, vec4<f32>(-128.0), vec4<f32>(127.0)) - zero;
  high = clamp(round(high * (1.0 / size)) + zero, vec4<f32>(-128.0), vec4<f32>(127.0)) - zero;
#else
  // Compared as integers, so that what is not a number counts as the largest, and shows in the result.
  let bits = max(bitcast<vec4<u32>>(low) & vec4<u32>(0x7fffffffu), bitcast<vec4<u32>>(high) & vec4<u32>(0x7fffffffu));
  var top = max(max(bits.x, bits.y), max(bits.z, bits.w));
  top = max(top, subgroupShuffleXor(top, 1u));
#if eights > 2
  top = max(top, subgroupShuffleXor(top, 2u));
#end
  let largest = bitcast<f32>(top);
#if planes == 3
  const limit = 8323072.0;  // 127 * 2^16
#else
  const limit = 32512.0;  // 127 * 2^8
#end
  // Below this the quotient would overflow, and the numbers count for nothing.
  let factor = select(limit / largest, 0.0, top < 0x0da24260u);
  let size = largest * (1.0 / limit);
#end
  // Integers plus 128 in each byte but the last, so that no byte carries into the next.
#if planes == 3
  let a = bitcast<vec4<u32>>(vec4<i32>(round(low * factor)) + 32896);
  let b = bitcast<vec4<u32>>(vec4<i32>(round(high * factor)) + 32896);
#else
  // 1.5 * 2^23 + 128: the sum has the integer in its last bits.
  let a = bitcast<vec4<u32>>(fma(low, vec4<f32>(factor), vec4<f32>(12583040.0)));
  let b = bitcast<vec4<u32>>(fma(high, vec4<f32>(factor), vec4<f32>(12583040.0)));
#end
#if codes == nibbles
  // A u32 of weights has its even codes in the low nibbles.
  let first = vec4<u32>(a.xz, b.xz);
  let second = vec4<u32>(a.yw, b.yw);
#else
  let first = a;
  let second = b;
#end
#for p in 0..planes
#if p == planes - 1
  let plane$p = vec2<u32>(packed(first >> vec4<u32>($(p * 8)u)), packed(second >> vec4<u32>($(p * 8)u)));
#else
  let plane$p = vec2<u32>(packed(first >> vec4<u32>($(p * 8)u)), packed(second >> vec4<u32>($(p * 8)u))) ^
      vec2<u32>(0x80808080u);
#end
#end
#if codes == nibbles
  var sum = sum_of_bytes(plane0.x) + sum_of_bytes(plane0.y) + 256 * (sum_of_bytes(plane1.x) + sum_of_bytes(plane1.y));
  sum += subgroupShuffleXor(sum, 1u);
#if eights > 2
  sum += subgroupShuffleXor(sum, 2u);
#end
#if planes == 3
  var high_sum = sum_of_bytes(plane2.x) + sum_of_bytes(plane2.y);
  high_sum += subgroupShuffleXor(high_sum, 1u);
#if eights > 2
  high_sum += subgroupShuffleXor(high_sum, 2u);
#end
#end
#end
  if (!inside) { return; }
#for p in 0..planes
  x_bytes[(((m * $(planes)u + $(p)u) * $(eights / 2)u + e / 2u) * wide + u) * 2u + e % 2u] = plane$p;
#end
  if (e == 0u) {
#if codes == nibbles
    x_scale[m * wide + u] = vec2<f32>(size, bitcast<f32>(-8 * sum));
#if planes == 3
    x_high[m * wide + u] = -8 * high_sum;
#end
#else
    x_scale[m * wide + u] = vec2<f32>(size, 0.0);
#if planes == 3
    x_high[m * wide + u] = 0;
#end
#end
  }
}

#if x_form == norm
// One over the RMS of row m.
fn norm_of(m: u32) -> f32 {
  const slots = wide * eights / lanes;
  var sum = 0.0;
#if wide * eights <= 16 * lanes
#for i in 0..wide * eights / lanes
  sum += x_squares[m * slots + $(i)u];
#end
#else
  for (var i = 0u; i < slots; i++) { sum += x_squares[m * slots + i]; }
#end
  return inverseSqrt(sum / f32(params.k) + eps());
}
#end
