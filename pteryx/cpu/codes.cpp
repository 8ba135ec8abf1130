// Codes of 4 or 8 bits as f32.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pteryx/cpu/codes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "pteryx/cpu/codes.h"
#include "pteryx/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pteryx::cpu {
namespace HWY_NAMESPACE {
namespace {
using V = hn::Vec<Floats>;

struct Scaled {
  float zero;
  float scale;
  HWY_INLINE V of(hn::Vec<Ints> codes) const {
    const Floats d;
    return hn::Mul(hn::Sub(hn::ConvertTo(d, codes), hn::Set(d, zero)), hn::Set(d, scale));
  }
  HWY_INLINE float of(int code) const { return (static_cast<float>(code) - zero) * scale; }
};

template <class T>
void decode_bytes(const T* codes, size_t count, const Scaled& s, float* y) {
  const Floats d;
  const Ints di;
  const hn::Rebind<T, Floats> d8;
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    hn::StoreU(s.of(hn::PromoteTo(di, hn::LoadU(d8, codes + i))), d, y + i);
  for (; i < count; ++i) y[i] = s.of(int{codes[i]});
}

void decode_halves(bool low_first, const uint8_t* codes, size_t count, Scaled s, float* y) {
  const Floats d;
  const Ints di;
  const hn::Rebind<uint8_t, Floats> d8;
  s.zero += 8;
  const auto mask = hn::Set(di, 15);
  const size_t bytes = count / 2;
  size_t i = 0;
  for (; i + kLanes <= bytes; i += kLanes) {
    const auto both = hn::PromoteTo(di, hn::LoadU(d8, codes + i));
    const V low = s.of(hn::And(both, mask));
    const V high = s.of(hn::ShiftRight<4>(both));
    if (low_first) {
      hn::StoreInterleaved2(low, high, d, y + 2 * i);
    } else {
      hn::StoreInterleaved2(high, low, d, y + 2 * i);
    }
  }
  for (; i < bytes; ++i) {
    y[2 * i + (low_first ? 0 : 1)] = s.of(codes[i] & 15);
    y[2 * i + (low_first ? 1 : 0)] = s.of(codes[i] >> 4);
  }
}

void decode_codes(CodeKind kind, const void* codes, size_t count, float zero, float scale,
                  float* y) {
  const Scaled s{zero, scale};
  switch (kind) {
    case CodeKind::kLowFirst:
    case CodeKind::kHighFirst:
      return decode_halves(kind == CodeKind::kLowFirst, static_cast<const uint8_t*>(codes), count,
                           s, y);
    case CodeKind::kSigned: return decode_bytes(static_cast<const int8_t*>(codes), count, s, y);
    case CodeKind::kUnsigned: return decode_bytes(static_cast<const uint8_t*>(codes), count, s, y);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pteryx::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pteryx::cpu {
HWY_EXPORT(decode_codes);
void decode(CodeKind kind, const void* codes, size_t count, float zero, float scale, float* y) {
  HWY_DYNAMIC_DISPATCH(decode_codes)(kind, codes, count, zero, scale, y);
}
}  // namespace pteryx::cpu
#endif
