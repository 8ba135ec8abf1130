// Between f32 and f16, rounded to nearest even, with denormals, infinities and NaN: Highway is only
// so exact where the processor has instructions for it. Included once for each target.
// SPDX-License-Identifier: BSD-3-Clause
#if defined(PTERYX_CPU_HALVES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PTERYX_CPU_HALVES_INL_H_
#undef PTERYX_CPU_HALVES_INL_H_
#else
#define PTERYX_CPU_HALVES_INL_H_
#endif

#include <cstdint>

#include <hwy/highway.h>

#undef PTERYX_HAS_HALVES
#if HWY_ARCH_ARM_A64 || (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C))
#define PTERYX_HAS_HALVES 1
#else
#define PTERYX_HAS_HALVES 0
#endif

HWY_BEFORE_NAMESPACE();
namespace pteryx::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// f32 from the bits of f16.
template <class D>
HWY_INLINE hn::Vec<D> widen_halves(D d, hn::Vec<hn::Rebind<uint16_t, D>> halves) {
#if PTERYX_HAS_HALVES
  return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), halves));
#else
  const hn::Rebind<uint32_t, D> du;
  const hn::Rebind<int32_t, D> di;
  const auto bits = hn::PromoteTo(du, halves);
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000U)));
  // Exponent and mantissa at their places in f32, with the exponent 112 too small.
  const auto low = hn::ShiftLeft<13>(hn::And(bits, hn::Set(du, 0x7FFFU)));
  const auto finite = hn::Mul(hn::BitCast(d, low), hn::Set(d, 0x1p112F));
  const auto other = hn::BitCast(d, hn::Or(low, hn::Set(du, 0x7F800000U)));
  const auto is_finite = hn::Lt(hn::BitCast(di, low), hn::Set(di, 0x0F800000));
  return hn::Or(hn::IfThenElse(hn::RebindMask(d, is_finite), finite, other), hn::BitCast(d, sign));
#endif
}

template <class D>
HWY_INLINE hn::Vec<hn::Rebind<uint16_t, D>> halve([[maybe_unused]] D d, hn::Vec<D> v) {
  const hn::Rebind<uint16_t, D> du16;
#if PTERYX_HAS_HALVES
  return hn::BitCast(du16, hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), v));
#else
  const hn::Rebind<uint32_t, D> du;
  const hn::Rebind<int32_t, D> di;
  const auto size = hn::Abs(v);
  const auto bits = hn::BitCast(di, size);
  const auto sign =
      hn::BitCast(di, hn::ShiftRight<16>(hn::And(hn::BitCast(du, v), hn::Set(du, 0x80000000U))));
  // Half a unit of f16 less one of f32, and one more where the unit is odd, carry into the
  // exponent.
  const auto odd = hn::And(hn::ShiftRight<13>(bits), hn::Set(di, 1));
  const auto offset = hn::Set(di, 0xFFF - (112 << 23));
  const auto normal = hn::ShiftRight<13>(hn::Add(hn::Add(bits, offset), odd));
  // Added to 0.5, of which the last bit is the unit of denormals.
  const auto half = hn::Set(d, 0.5F);
  const auto denormal = hn::Sub(hn::BitCast(di, hn::Add(size, half)), hn::BitCast(di, half));
  const auto finite = hn::IfThenElse(hn::Lt(bits, hn::Set(di, 0x38800000)), denormal, normal);
  const auto other = hn::IfThenElse(hn::Gt(bits, hn::Set(di, 0x7F800000)), hn::Set(di, 0x7E00),
                                    hn::Set(di, 0x7C00));
  const auto all = hn::IfThenElse(hn::Lt(bits, hn::Set(di, 0x47800000)), finite, other);
  return hn::DemoteTo(du16, hn::Or(all, sign));
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace pteryx::cpu
HWY_AFTER_NAMESPACE();

#endif
