// Rounds x to 15 bits in blocks of 32. Included once for each target.
// SPDX-License-Identifier: BSD-3-Clause
#if defined(PTERYX_CPU_ROUNDING_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PTERYX_CPU_ROUNDING_INL_H_
#undef PTERYX_CPU_ROUNDING_INL_H_
#else
#define PTERYX_CPU_ROUNDING_INL_H_
#endif

#include <limits>

#include "pteryx/cpu/product_parts.h"
#include "pteryx/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pteryx::cpu {
namespace HWY_NAMESPACE {

// Up to 32 values of x; the rest is 0. A block with a value that is not finite has the scale NaN,
// one whose values are all below 1e-30 is 0.
HWY_INLINE void round_block(const float* HWY_RESTRICT x, size_t count, Rounded& to) {
  const Floats d;
  const hn::Rebind<int16_t, Floats> d16;
  HWY_ALIGN float padded[kBlock];
  if (count < kBlock) {
    std::memset(padded, 0, sizeof(padded));
    std::memcpy(padded, x, count * sizeof(float));
    x = padded;
  }
  // Sizes in the order of their bits, in which infinities and NaN come last.
  const Ints di;
  auto most = hn::Zero(di);
  for (size_t i = 0; i < kBlock; i += kLanes)
    most = hn::Max(most, hn::BitCast(di, hn::Abs(hn::LoadU(d, x + i))));
  const float largest = hn::GetLane(hn::BitCast(d, hn::MaxOfLanes(di, most)));
  const bool finite = largest <= std::numeric_limits<float>::max();
  const bool used = finite && largest > 1e-30F;
  to.scale = used ? largest * (1.0F / kMostRounded)
                  : (finite ? 0.0F : std::numeric_limits<float>::quiet_NaN());
  const auto inverse = hn::Set(d, used ? kMostRounded / largest : 0.0F);
  for (size_t i = 0; i < kBlock; i += kLanes) {
    // A product of 0 keeps values that are not finite out of the conversion.
    const auto v = used ? hn::Mul(hn::LoadU(d, x + i), inverse) : hn::Zero(d);
    hn::StoreU(hn::DemoteTo(d16, hn::NearestInt(v)), d16, to.values + i);
  }
}

// Where weights have nibbles, each eight values as 0 4 1 5 2 6 3 7 (or 1 5 0 4 3 7 2 6 where the
// high nibble is first), where they have bytes each four as 0 2 1 3: pairs as they come out of a
// 32-bit word by shifts and masks.
HWY_INLINE void pair_up(WeightKind kind, const int16_t* HWY_RESTRICT from,
                        int16_t* HWY_RESTRICT to) {
  const bool nibbles = is_nibbles(kind);
  const size_t step = nibbles ? 4 : 2;
  const size_t flip = kind == WeightKind::kHighFirst ? 1 : 0;
  for (size_t at = 0; at < kBlock; at += 2 * step) {
    for (size_t j = 0; j < step; ++j) {
      to[at + 2 * j] = from[at + (j ^ flip)];
      to[at + 2 * j + 1] = from[at + (j ^ flip) + step];
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pteryx::cpu
HWY_AFTER_NAMESPACE();

#endif
