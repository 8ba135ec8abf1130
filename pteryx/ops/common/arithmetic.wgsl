// PyTorch's rules where WGSL leaves the result open: negative bases, base 1, exponent 0, floor and integer powers.
#option compute f32 | i32
#if compute == f32
fn power(a: f32, b: f32) -> f32 {
  if (b == 0.0 || a == 1.0) { return 1.0; }
  if (b == 1.0) { return a; }
  if (b == 2.0) { return a * a; }
  if (b == 3.0) { return a * a * a; }
  if (b == -1.0) { return 1.0 / a; }
  if (b == 0.5) { return sqrt(a); }
  let r = pow(abs(a), b);
  if (a >= 0.0) { return r; }
  if (floor(b) != b) { return bitcast<f32>(0x7fc00000u | (params.n & 0u)); }
  return select(r, -r, fract(b * 0.5) != 0.0);
}
#else
fn floor_div(a: i32, b: i32) -> i32 {
  let q = a / b;
  return select(q, q - 1, a % b != 0 && (a < 0) != (b < 0));
}
fn int_pow(a: i32, b: i32) -> i32 {
  if (b < 0) { return select(select(0, select(1, -1, (b & 1) != 0), a == -1), 1, a == 1); }
  var result = 1;
  var base = a;
  for (var e = b; e > 0; e >>= 1u) {
    if ((e & 1) != 0) { result *= base; }
    base *= base;
  }
  return result;
}
#end
