// Elementary functions to a few units in the last place on every device. WGSL lets its own be off by 2^-11 (sin, cos,
// atan), by any factor near their zeros (log, tanh), and leaves open what happens where they overflow.
// NaN passes through: comparisons are written so that it fails them.

// Not a constant expression: WGSL refuses constants that are not finite.
var<private> no_bits: u32 = 0u;
fn infinity() -> f32 { return bitcast<f32>(0x7f800000u | no_bits); }
fn not_a_number() -> f32 { return bitcast<f32>(0x7fc00000u | no_bits); }

fn magnitude_bits(x: f32) -> u32 { return bitcast<u32>(x) & 0x7fffffffu; }
// By its bits: drivers turn comparisons that only NaN fails into ones that it passes.
fn is_nan(x: f32) -> bool { return magnitude_bits(x) > 0x7f800000u; }
fn at_most(x: f32, hi: f32) -> f32 { return select(select(x, hi, x > hi), x, is_nan(x)); }
fn at_least(x: f32, lo: f32) -> f32 { return select(select(x, lo, x < lo), x, is_nan(x)); }
fn with_sign_of(x: f32, magnitude: f32) -> f32 { return select(magnitude, -magnitude, x < 0.0); }

fn exp_of(x: f32) -> f32 {
  let hi = 88.72283;  // the largest argument of a finite result
  return select(exp(at_most(x, hi)), infinity(), x > hi);
}

fn expm1_of(x: f32) -> f32 {
  if (abs(x) < 0.5) {
    return x * (1.0 + x / 2.0 * (1.0 + x / 3.0 * (1.0 + x / 4.0 * (1.0 + x / 5.0 * (1.0 + x / 6.0 *
        (1.0 + x / 7.0 * (1.0 + x / 8.0)))))));
  }
  return exp_of(x) - 1.0;
}

fn log_of(x: f32) -> f32 {
  if (x > 0.0) { return log(x); }
  return select(not_a_number(), -infinity(), x == 0.0);
}

fn log2_of(x: f32) -> f32 {
  if (x > 0.0) { return log2(x); }
  return select(not_a_number(), -infinity(), x == 0.0);
}

// 2 atanh(x / (2 + x)) near 0.
fn log1p_of(x: f32) -> f32 {
  if (abs(x) < 0.35) {
    let s = x / (2.0 + x);
    let z = s * s;
    return 2.0 * s * (1.0 + z * (1.0 / 3.0 + z * (1.0 / 5.0 + z * (1.0 / 7.0 + z * (1.0 / 9.0 + z / 11.0)))));
  }
  return log_of(1.0 + x);
}

fn sigmoid_of(x: f32) -> f32 { return 1.0 / (1.0 + exp(at_most(-x, 88.0))); }

fn tanh_of(x: f32) -> f32 {
  let e = expm1_of(2.0 * at_most(abs(x), 15.0));
  return with_sign_of(x, e / (e + 2.0));
}

fn sinh_of(x: f32) -> f32 {
  let a = abs(x);
  if (a < 1.0) {
    let e = expm1_of(x);
    return 0.5 * (e + e / (e + 1.0));
  }
  let hi = 89.41598;
  let h = exp(0.5 * at_most(a, hi));
  return with_sign_of(x, select(0.5 * h * h - 0.5 / (h * h), infinity(), a > hi));
}

fn cosh_of(x: f32) -> f32 {
  let hi = 89.41598;
  let h = exp(0.5 * at_most(abs(x), hi));
  return select(0.5 * h * h + 0.5 / (h * h), infinity(), abs(x) > hi);
}

fn asinh_of(x: f32) -> f32 {
  let a = abs(x);
  if (a > 1e4) { return with_sign_of(x, log(a) + 0.69314718); }
  return with_sign_of(x, log1p_of(a + a * a / (1.0 + sqrt(1.0 + a * a))));
}

fn acosh_of(x: f32) -> f32 {
  if (x < 1.0) { return not_a_number(); }
  if (x > 1e4) { return log(x) + 0.69314718; }
  let t = x - 1.0;
  return log1p_of(t + sqrt(t * (t + 2.0)));
}

fn atanh_of(x: f32) -> f32 {
  let a = abs(x);
  if (a >= 1.0) { return with_sign_of(x, select(not_a_number(), infinity(), a == 1.0)); }
  return with_sign_of(x, 0.5 * log1p_of(2.0 * a / (1.0 - a)));
}

// (sin x, cos x). pi/2 is split in three so that the products of the first two with k are exact while |x| < 8192, fused
// or not.
fn sin_cos(x: f32) -> vec2<f32> {
  let k = round(x * 0.63661977);
  let r = fma(-k, 7.5497900e-8, fma(-k, 2029.0 / 4194304.0, fma(-k, 201.0 / 128.0, x)));
  let z = r * r;
  let s = r * (1.0 - z / 6.0 * (1.0 - z / 20.0 * (1.0 - z / 42.0 * (1.0 - z / 72.0))));
  let c = 1.0 - z / 2.0 * (1.0 - z / 12.0 * (1.0 - z / 30.0 * (1.0 - z / 56.0 * (1.0 - z / 90.0))));
  let quarter = i32(k);
  let turned = select(vec2<f32>(s, c), vec2<f32>(c, -s), (quarter & 1) != 0);
  return select(turned, -turned, (quarter & 2) != 0);
}

fn tan_of(x: f32) -> f32 {
  let sc = sin_cos(x);
  return sc.x / sc.y;
}

// The angle of the point (x, y), both >= 0 and not both 0. The polynomial is atan(sqrt(z)) / sqrt(z) on [0, tan(pi/8)^2]
// to 2e-8.
fn angle(y: f32, x: f32) -> f32 {
  let steep = y > x;
  let t = select(y / x, x / y, steep);
  let far = t > 0.41421356;
  let u = select(t, (t - 1.0) / (t + 1.0), far);
  let z = u * u;
  let p = u * (1.0 + z * (-0.333327979 + z * (0.199744701 + z * (-0.138520882 + z * 0.0798673555))));
  let a = select(p, p + 0.78539816, far);
  return select(a, 1.57079633 - a, steep);
}

fn atan_of(x: f32) -> f32 { return with_sign_of(x, angle(abs(x), 1.0)); }

fn asin_of(x: f32) -> f32 {
  let a = abs(x);
  if (a > 1.0) { return not_a_number(); }
  return with_sign_of(x, angle(a, sqrt((1.0 - a) * (1.0 + a))));
}

fn acos_of(x: f32) -> f32 {
  if (abs(x) > 1.0) { return not_a_number(); }
  return 2.0 * angle(sqrt(1.0 - x), sqrt(1.0 + x));
}

// A polynomial to 1e-9 below 1, Abramowitz and Stegun 7.1.26 (1.5e-7) above.
fn erf_of(x: f32) -> f32 {
  let a = at_most(abs(x), 10.0);
  if (a < 1.0) {
    let z = x * x;
    return x * (1.12837911 + z * (-0.37612626 + z * (0.112835854 + z * (-0.026853811 + z * (0.00518832775 +
        z * (-0.000801019312 + z * 7.85386001e-05))))));
  }
  let t = 1.0 / (1.0 + 0.3275911 * a);
  let p = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return with_sign_of(x, 1.0 - p * exp(-a * a));
}

// eps < 0: none.
fn logit_of(x: f32, eps: f32) -> f32 {
  let z = select(x, at_most(at_least(x, eps), 1.0 - eps), eps >= 0.0);
  return log_of(z / (1.0 - z));
}

fn relu_of(x: f32) -> f32 { return at_least(x, 0.0); }
fn silu_of(x: f32) -> f32 { return x * sigmoid_of(x); }
fn gelu_of(x: f32) -> f32 { return 0.5 * x * (1.0 + erf_of(x * 0.70710678)); }
fn gelu_tanh_of(x: f32) -> f32 { return 0.5 * x * (1.0 + tanh_of(0.79788456 * (x + 0.044715 * x * x * x))); }
