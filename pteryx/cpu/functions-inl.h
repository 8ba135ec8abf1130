// Elementary functions of vectors of f32. Included once for each target.
// NaN passes through: comparisons are written so that it fails them.
// SPDX-License-Identifier: BSD-3-Clause
#if defined(PTERYX_CPU_FUNCTIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PTERYX_CPU_FUNCTIONS_INL_H_
#undef PTERYX_CPU_FUNCTIONS_INL_H_
#else
#define PTERYX_CPU_FUNCTIONS_INL_H_
#endif

#include "pteryx/cpu/finish.h"
#include "pteryx/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pteryx::cpu {
namespace HWY_NAMESPACE {

using V = hn::Vec<Floats>;

HWY_INLINE V at_least(V x, V low) { return hn::IfThenElse(hn::Lt(x, low), low, x); }
HWY_INLINE V at_most(V x, V high) { return hn::IfThenElse(hn::Gt(x, high), high, x); }

// c[0] + x * (c[1] + x * ...).
template <size_t kCount>
HWY_INLINE V polynomial(V x, const float (&c)[kCount]) {
  const Floats d;
  V y = hn::Set(d, c[kCount - 1]);
  PTERYX_UNROLL for (size_t i = kCount - 1; i-- > 0;) y = hn::MulAdd(y, x, hn::Set(d, c[i]));
  return y;
}

// A polynomial to 1e-9 below 1, Abramowitz and Stegun 7.1.26 (1.5e-7) above.
HWY_INLINE V erf_of(V x) {
  const Floats d;
  const V one = hn::Set(d, 1.0F);
  const V a = at_most(hn::Abs(x), hn::Set(d, 10.0F));
  constexpr float kNear[] = {1.12837911F,    -0.37612626F,     0.112835854F,   -0.026853811F,
                             0.00518832775F, -0.000801019312F, 7.85386001e-05F};
  constexpr float kFar[] = {0.254829592F, -0.284496736F, 1.421413741F, -1.453152027F, 1.061405429F};
  const V near = hn::Mul(x, polynomial(hn::Mul(x, x), kNear));
  const V t = hn::Div(one, hn::MulAdd(a, hn::Set(d, 0.3275911F), one));
  const V p = hn::Mul(hn::Mul(t, polynomial(t, kFar)), exp_of(d, hn::Neg(hn::Mul(a, a))));
  const V far = hn::CopySign(hn::Sub(one, p), x);
  return hn::IfThenElse(hn::Lt(a, one), near, far);
}

// By exp(-|x|), which is never beyond f32.
HWY_INLINE V sigmoid_of(V x) {
  const Floats d;
  const V one = hn::Set(d, 1.0F);
  const V e = exp_of(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}

// By exp(2 |x|) - 1, as a series near 0.
HWY_INLINE V tanh_of(V x) {
  const Floats d;
  const V a = hn::Add(hn::Abs(x), hn::Abs(x));
  constexpr float kNear[] = {1.0F,       0.5F,       1.0F / 6,    1.0F / 24,
                             1.0F / 120, 1.0F / 720, 1.0F / 5040, 1.0F / 40320};
  const V bounded = at_most(a, hn::Set(d, 30.0F));
  const V e = hn::IfThenElse(hn::Lt(bounded, hn::Set(d, 0.5F)),
                             hn::Mul(bounded, polynomial(bounded, kNear)),
                             hn::Sub(exp_of(d, bounded), hn::Set(d, 1.0F)));
  return hn::CopySign(hn::Div(e, hn::Add(e, hn::Set(d, 2.0F))), x);
}

HWY_INLINE V silu_of(V x) { return hn::Mul(x, sigmoid_of(x)); }

HWY_INLINE V gelu_of(V x) {
  const Floats d;
  const V both = hn::Add(hn::Set(d, 1.0F), erf_of(hn::Mul(x, hn::Set(d, 0.70710678F))));
  return hn::Mul(hn::Mul(hn::Set(d, 0.5F), x), both);
}

HWY_INLINE V gelu_tanh_of(V x) {
  const Floats d;
  const V cube = hn::Mul(hn::Mul(x, x), x);
  const V inner = hn::Mul(hn::Set(d, 0.79788456F), hn::MulAdd(hn::Set(d, 0.044715F), cube, x));
  const V both = hn::Add(hn::Set(d, 1.0F), tanh_of(inner));
  return hn::Mul(hn::Mul(hn::Set(d, 0.5F), x), both);
}

HWY_INLINE V hardsigmoid_of(V x) {
  const Floats d;
  const V six = hn::Set(d, 6.0F);
  return hn::Div(at_most(at_least(hn::Add(x, hn::Set(d, 3.0F)), hn::Zero(d)), six), six);
}

HWY_INLINE V hardswish_of(V x) { return hn::Mul(x, hardsigmoid_of(x)); }

HWY_INLINE V activated(Activation a, V x) {
  switch (a) {
    case Activation::kNone: break;
    case Activation::kRelu: return at_least(x, hn::Zero(Floats()));
    case Activation::kSilu: return silu_of(x);
    case Activation::kGelu: return gelu_of(x);
    case Activation::kGeluTanh: return gelu_tanh_of(x);
    case Activation::kHardswish: return hardswish_of(x);
  }
  return x;
}

// Columns `column`.. of an operand for one row, `count` of them, at most a vector.
HWY_INLINE V load_operand(const Operand& o, size_t row, size_t column, size_t count) {
  const Floats d;
  const float* from = o.data + row * o.row;
  if (o.column == 0) return hn::Set(d, *from);
  return count == kLanes ? hn::LoadU(d, from + column) : load_part(d, from + column, count);
}

HWY_INLINE V finished(const Finish& f, V v, size_t row, size_t column, size_t count) {
  const Floats d;
  if (f.factor.data != nullptr) v = hn::Mul(v, load_operand(f.factor, row, column, count));
  if (f.shift.data != nullptr) v = hn::Add(v, load_operand(f.shift, row, column, count));
  v = activated(f.activation, v);
  if (f.scale.data != nullptr) v = hn::Mul(v, load_operand(f.scale, row, column, count));
  if (f.residual.data != nullptr) v = hn::Add(v, load_operand(f.residual, row, column, count));
  return at_most(at_least(v, hn::Set(d, f.low)), hn::Set(d, f.high));
}

// y = the finished sums of `count` columns of a row.
HWY_INLINE void finish_row(const Finish& f, const float* sums, size_t row, size_t column,
                           size_t count, float* y) {
  const Floats d;
  size_t i = 0;
  // What most sums need: a shift for the row, a residual and bounds.
  if (f.factor.data == nullptr && f.scale.data == nullptr && f.shift.column == 0 &&
      f.activation == Activation::kNone) {
    const bool shifted = f.shift.data != nullptr;
    const V shift = hn::Set(d, shifted ? f.shift.data[row * f.shift.row] : 0.0F);
    const V low = hn::Set(d, f.low);
    const V high = hn::Set(d, f.high);
    const bool all = f.residual.data != nullptr && f.residual.column == 1;
    const float* const residual = all ? f.residual.data + row * f.residual.row + column : nullptr;
    if (all || f.residual.data == nullptr) {
      for (; i + kLanes <= count; i += kLanes) {
        V v = hn::LoadU(d, sums + i);
        if (shifted) v = hn::Add(v, shift);
        if (all) v = hn::Add(v, hn::LoadU(d, residual + i));
        hn::StoreU(at_most(at_least(v, low), high), d, y + i);
      }
    }
  }
  for (; i + kLanes <= count; i += kLanes)
    hn::StoreU(finished(f, hn::LoadU(d, sums + i), row, column + i, kLanes), d, y + i);
  if (i == count) return;
  const size_t rest = count - i;
  store_part(finished(f, load_part(d, sums + i, rest), row, column + i, rest), d, y + i, rest);
}

}  // namespace HWY_NAMESPACE
}  // namespace pteryx::cpu
HWY_AFTER_NAMESPACE();

#endif
