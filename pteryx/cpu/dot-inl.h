// Products of pairs of i16, and of fours of bytes, added to i32. Included once for each target.
// SPDX-License-Identifier: BSD-3-Clause
#if defined(PTERYX_CPU_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PTERYX_CPU_DOT_INL_H_
#undef PTERYX_CPU_DOT_INL_H_
#else
#define PTERYX_CPU_DOT_INL_H_
#endif

#include <hwy/highway.h>

// Whether there is add_fours.
#undef PTERYX_HAS_BYTE_DOTS
#if HWY_TARGET == HWY_AVX3_DL
#define PTERYX_HAS_BYTE_DOTS 1
#else
#define PTERYX_HAS_BYTE_DOTS 0
#endif

// In place of HWY_BEFORE_NAMESPACE where these are called: Highway's target has the instruction
// for processors that have it in vectors of 256 bits alone.
#undef PTERYX_BEFORE_PAIRS
#if HWY_TARGET == HWY_AVX3_DL
#define PTERYX_BEFORE_PAIRS()                       \
  HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",avx512vnni") \
  static_assert(true, "For requiring trailing semicolon")
#else
#define PTERYX_BEFORE_PAIRS() HWY_BEFORE_NAMESPACE()
#endif

PTERYX_BEFORE_PAIRS();
namespace pteryx::cpu {
namespace HWY_NAMESPACE {

// a[2 i] * b[2 i] + a[2 i + 1] * b[2 i + 1] is added to lane i of the sum, or a part of it to some
// lane of `odd`. Where there is an instruction for it, Highway does not take it: it asks for two.
#if HWY_TARGET == HWY_AVX3_DL
template <class D, class V16, class V32>
HWY_INLINE V32 add_pairs(D d, V16 a, V16 b, V32 sum, V32& /*odd*/) {
#if HWY_COMPILER_GCC_ACTUAL
  // g++ 12 copies every sum to another register, and back, around the intrinsic.
  static_cast<void>(d);
  asm("vpdpwssd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
  return sum;
#else
  if constexpr (hwy::HWY_NAMESPACE::MaxLanes(d) == 16) {
    return V32{_mm512_dpwssd_epi32(sum.raw, a.raw, b.raw)};
  } else if constexpr (hwy::HWY_NAMESPACE::MaxLanes(d) == 8) {
    return V32{_mm256_dpwssd_epi32(sum.raw, a.raw, b.raw)};
  } else {
    return V32{_mm_dpwssd_epi32(sum.raw, a.raw, b.raw)};
  }
#endif
}
#else
template <class D, class V16, class V32>
HWY_INLINE V32 add_pairs(D d, V16 a, V16 b, V32 sum, V32& odd) {
  return hwy::HWY_NAMESPACE::ReorderWidenMulAccumulate(d, a, b, sum, odd);
}
#endif

#if PTERYX_HAS_BYTE_DOTS
using ByteSums = hwy::HWY_NAMESPACE::Vec<hwy::HWY_NAMESPACE::ScalableTag<int32_t>>;

// The sum of four products of unsigned bytes of a with signed ones of b is added to each lane.
template <class V8>
HWY_INLINE ByteSums add_fours(V8 a, V8 b, ByteSums sum) {
#if HWY_COMPILER_GCC_ACTUAL
  asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
  return sum;
#else
  return ByteSums{_mm512_dpbusd_epi32(sum.raw, a.raw, b.raw)};
#endif
}

// Of every 128 bits: lane r has the sum of the four lanes of 256 * upper[r] + lower[r], which are
// all i16.
HWY_INLINE ByteSums add_halves(const ByteSums* upper, const ByteSums* lower) {
  const hwy::HWY_NAMESPACE::ScalableTag<int32_t> d;
  const auto ones = _mm512_set1_epi16(1);
  const auto high = _mm512_set1_epi16(256);
  __m512i pairs[2];  // lanes of two rows, two of each
  for (size_t i = 0; i < 2; ++i) {
    const auto u = _mm512_packs_epi32(upper[2 * i].raw, upper[2 * i + 1].raw);
    const auto l = _mm512_packs_epi32(lower[2 * i].raw, lower[2 * i + 1].raw);
    ByteSums odd;
    auto sum = add_pairs(d, ByteSums{u}, ByteSums{high}, hwy::HWY_NAMESPACE::Zero(d), odd);
    sum = add_pairs(d, ByteSums{l}, ByteSums{ones}, sum, odd);
    pairs[i] = sum.raw;
  }
  const auto a = _mm512_castsi512_ps(pairs[0]);
  const auto b = _mm512_castsi512_ps(pairs[1]);
  return ByteSums{_mm512_add_epi32(_mm512_castps_si512(_mm512_shuffle_ps(a, b, 0x88)),
                                   _mm512_castps_si512(_mm512_shuffle_ps(a, b, 0xDD)))};
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace pteryx::cpu
HWY_AFTER_NAMESPACE();

#endif
