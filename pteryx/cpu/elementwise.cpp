// Elementwise functions of f32. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pteryx/cpu/elementwise.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "pteryx/cpu/elementwise.h"
#include "pteryx/cpu/functions-inl.h"
#include "pteryx/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pteryx::cpu {
namespace HWY_NAMESPACE {
namespace {

template <class Map>
HWY_INLINE void map_all(const float* x, size_t count, float* y, const Map& map) {
  const Floats d;
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) hn::StoreU(map(hn::LoadU(d, x + i)), d, y + i);
  if (i < count) store_part(map(load_part(d, x + i, count - i)), d, y + i, count - i);
}

void apply_unary(Unary f, float a, float b, const float* x, size_t count, float* y) {
  const Floats d;
  const auto map = [&](const auto& function) HWY_ATTR { map_all(x, count, y, function); };
  const V one = hn::Set(d, 1.0F);
  const V first = hn::Set(d, a);
  const V second = hn::Set(d, b);
  switch (f) {
    case Unary::kNeg: return map([](V v) HWY_ATTR { return hn::Neg(v); });
    case Unary::kAbs: return map([](V v) HWY_ATTR { return hn::Abs(v); });
    case Unary::kSqrt: return map([](V v) HWY_ATTR { return hn::Sqrt(v); });
    case Unary::kRsqrt: return map([one](V v) HWY_ATTR { return hn::Div(one, hn::Sqrt(v)); });
    case Unary::kReciprocal: return map([one](V v) HWY_ATTR { return hn::Div(one, v); });
    case Unary::kExp: return map([d](V v) HWY_ATTR { return exp_of(d, v); });
    case Unary::kErf: return map([](V v) HWY_ATTR { return erf_of(v); });
    case Unary::kTanh: return map([](V v) HWY_ATTR { return tanh_of(v); });
    case Unary::kSigmoid: return map([](V v) HWY_ATTR { return sigmoid_of(v); });
    case Unary::kSilu: return map([](V v) HWY_ATTR { return silu_of(v); });
    case Unary::kHardsigmoid: return map([](V v) HWY_ATTR { return hardsigmoid_of(v); });
    case Unary::kHardswish: return map([](V v) HWY_ATTR { return hardswish_of(v); });
    case Unary::kGelu: return map([](V v) HWY_ATTR { return gelu_of(v); });
    case Unary::kGeluTanh: return map([](V v) HWY_ATTR { return gelu_tanh_of(v); });
    case Unary::kClamp:
      return map([&](V v) HWY_ATTR { return at_most(at_least(v, first), second); });
    case Unary::kLeakyRelu:
      return map([&](V v) HWY_ATTR {
        return hn::IfThenElse(hn::Ge(v, hn::Zero(d)), v, hn::Mul(v, first));
      });
  }
}

template <class Function>
HWY_INLINE void map_both(const Binaries& f, const float* a, const float* b, size_t count, float* y,
                         const Function& function) {
  const Floats d;
  const auto load = [d](const float* from, size_t step, size_t i, size_t n) HWY_ATTR {
    if (step == 0) return hn::Set(d, *from);
    return n == kLanes ? hn::LoadU(d, from + i) : load_part(d, from + i, n);
  };
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    hn::StoreU(function(load(a, f.a_step, i, kLanes), load(b, f.b_step, i, kLanes)), d, y + i);
  if (i == count) return;
  const size_t rest = count - i;
  store_part(function(load(a, f.a_step, i, rest), load(b, f.b_step, i, rest)), d, y + i, rest);
}

void apply_binary(const Binaries& f, const float* a, const float* b, size_t count, float* y) {
  const V alpha = hn::Set(Floats(), f.alpha);
  const auto map = [&](const auto& function) HWY_ATTR { map_both(f, a, b, count, y, function); };
  switch (f.f) {
    case Binary::kAdd: return map([alpha](V v, V w) HWY_ATTR { return hn::MulAdd(alpha, w, v); });
    case Binary::kSub:
      return map([alpha](V v, V w) HWY_ATTR { return hn::NegMulAdd(alpha, w, v); });
    case Binary::kMul: return map([](V v, V w) HWY_ATTR { return hn::Mul(v, w); });
    case Binary::kDiv: return map([](V v, V w) HWY_ATTR { return hn::Div(v, w); });
    // NaN is both the least and the largest. Ne() of a NaN with itself is not true everywhere.
    case Binary::kMin:
      return map([](V v, V w) HWY_ATTR {
        return hn::IfThenElse(hn::Eq(v, v), hn::IfThenElse(hn::Lt(v, w), v, w), v);
      });
    case Binary::kMax:
      return map([](V v, V w) HWY_ATTR {
        return hn::IfThenElse(hn::Eq(v, v), hn::IfThenElse(hn::Gt(v, w), v, w), v);
      });
    case Binary::kSiluMul: return map([](V v, V w) HWY_ATTR { return hn::Mul(silu_of(v), w); });
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pteryx::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pteryx::cpu {
HWY_EXPORT(apply_unary);
HWY_EXPORT(apply_binary);

void apply(Unary f, float a, float b, const float* x, size_t count, float* y) {
  HWY_DYNAMIC_DISPATCH(apply_unary)(f, a, b, x, count, y);
}
void apply(const Binaries& f, const float* a, const float* b, size_t count, float* y) {
  HWY_DYNAMIC_DISPATCH(apply_binary)(f, a, b, count, y);
}
}  // namespace pteryx::cpu
#endif
