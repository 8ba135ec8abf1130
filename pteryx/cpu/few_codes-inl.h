// Codes of four rows of weight times few rows of x (product_few.cpp). Included once for each
// target.
// SPDX-License-Identifier: BSD-3-Clause
#if defined(PTERYX_CPU_FEW_CODES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PTERYX_CPU_FEW_CODES_INL_H_
#undef PTERYX_CPU_FEW_CODES_INL_H_
#else
#define PTERYX_CPU_FEW_CODES_INL_H_
#endif

#include <hwy/cache_control.h>

#include "pteryx/cpu/few_units-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pteryx::cpu {
namespace HWY_NAMESPACE {
namespace {

// 16-bit values out of words: nibbles without their offset, bytes with their sign.
struct NibblePairs {
  static constexpr size_t kPlanes = 4;
  static constexpr bool kOffset = true;
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE hn::Vec<hn::Repartition<int16_t, D>> take(D d, V& v, size_t j) {
    const hn::Repartition<int16_t, D> d16;
    const auto codes = hn::BitCast(d16, hn::And(v, hn::Set(d, 0x000F000FU)));
    if (j + 1 < kPlanes) v = hn::ShiftRight<4>(v);
    return codes;
  }
};
struct BytePairs {
  static constexpr size_t kPlanes = 2;
  static constexpr bool kOffset = false;
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE hn::Vec<hn::Repartition<int16_t, D>> take(D, V& v, size_t j) {
    const hn::Repartition<int16_t, D> d16;
    const auto both = hn::BitCast(d16, v);
    return hn::ShiftRight<8>(j == 0 ? hn::ShiftLeft<8>(both) : both);
  }
};

// What a range of rows of weight works with.
template <size_t kM>
struct Rows {
  const uint8_t* weight[4];
  const uint8_t* x[kM];  // prepared
  RowLayout layout;
  size_t ahead;         // bytes of weight between those in use and those to ask memory for
  const float* scales;  // of the four rows, unit by unit; null where they come last
};

template <class D>
HWY_INLINE hn::Vec<D> load_words(D d, const uint8_t* from, size_t bytes) {
  const hn::Repartition<uint8_t, D> d8;
  constexpr size_t kBytes = hn::MaxLanes(d) * 4;
  return hn::BitCast(d, bytes >= kBytes ? hn::LoadU(d8, from) : load_part(d8, from, bytes));
}

// Asks for weights in the order of their addresses, as many bytes as four rows use of kUnits units:
// the processor follows one stream better than four short ones.
template <size_t kUnits, size_t kM>
HWY_INLINE void ask_ahead(const Rows<kM>& rows, size_t unit) {
  const uint8_t* next = rows.weight[0] + rows.ahead + unit * 64;
  PTERYX_UNROLL for (size_t i = 0; i < kUnits; ++i) hwy::Prefetch(next + i * 64);
}

// Adds the products of the units from `unit` on, as many as fit a vector, to `total`.
template <class Codes, size_t kM, class D, class VF>
HWY_INLINE void add_rounded(D d, const Rows<kM>& rows, size_t unit, size_t bytes, VF* total) {
  const hn::Repartition<int16_t, D> d16;
  const hn::Rebind<int32_t, D> d32;
  const hn::Rebind<float, D> df;
  using VI = hn::Vec<decltype(d32)>;
  hn::Vec<D> words[4];
  VI sum[4][kM];
  VI odd[4][kM];
  ask_ahead<hn::MaxLanes(d) / 4>(rows, unit);
  PTERYX_UNROLL for (size_t r = 0; r < 4; ++r) {
    words[r] = load_words(d, rows.weight[r] + unit * 16, bytes);
    PTERYX_UNROLL for (size_t m = 0; m < kM; ++m) {
      odd[r][m] = hn::Zero(d32);
      if constexpr (Codes::kOffset) {
        const void* offsets = rows.x[m] + rows.layout.offsets;
        sum[r][m] = hn::Load(d32, static_cast<const int32_t*>(offsets) + unit * 4);
      } else {
        sum[r][m] = hn::Zero(d32);
      }
    }
  }
  PTERYX_UNROLL for (size_t j = 0; j < Codes::kPlanes; ++j) {
    hn::Vec<decltype(d16)> x[kM];
    PTERYX_UNROLL for (size_t m = 0; m < kM; ++m) {
      const auto* values = reinterpret_cast<const int16_t*>(rows.x[m]) + unit * 8 * Codes::kPlanes +
                           j * hn::MaxLanes(d16);
      x[m] = hn::Load(d16, values);
    }
    PTERYX_UNROLL for (size_t r = 0; r < 4; ++r) {
      const auto codes = Codes::take(d, words[r], j);
      PTERYX_UNROLL for (size_t m = 0; m < kM; ++m) sum[r][m] =
          hn::ReorderWidenMulAccumulate(d32, codes, x[m], sum[r][m], odd[r][m]);
    }
  }
  PTERYX_UNROLL for (size_t m = 0; m < kM; ++m) {
    // All lanes of 128 bits are summed below, so it does not matter which has what.
    const VI all = add_quads(d32, hn::Add(sum[0][m], odd[0][m]), hn::Add(sum[1][m], odd[1][m]),
                             hn::Add(sum[2][m], odd[2][m]), hn::Add(sum[3][m], odd[3][m]));
    const void* x_scales = rows.x[m] + rows.layout.scales;
    auto scale = hn::Load(df, static_cast<const float*>(x_scales) + unit * 4);
    if (rows.scales != nullptr) scale = hn::Mul(scale, hn::LoadU(df, rows.scales + unit * 4));
    total[m] = hn::MulAdd(hn::ConvertTo(df, all), scale, total[m]);
  }
}

// f32 values out of words, times 2^28 or 2^24: the highest bits, which have the sign.
struct NibbleFloats {
  static constexpr size_t kPlanes = 8;
  static constexpr float kFactor = 1.0F / (1U << 28U);
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V sign(D d, V v) {
    return hn::Xor(v, hn::Set(d, 0x88888888U));
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE hn::Vec<hn::Rebind<float, D>> take(D d, V& v) {
    const auto bits = hn::And(v, hn::Set(d, 0xF0000000U));
    v = hn::ShiftLeft<4>(v);
    return hn::ConvertTo(hn::Rebind<float, D>(), hn::BitCast(hn::Rebind<int32_t, D>(), bits));
  }
};
struct ByteFloats {
  static constexpr size_t kPlanes = 4;
  static constexpr float kFactor = 1.0F / (1U << 24U);
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V sign(D, V v) {
    return v;
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE hn::Vec<hn::Rebind<float, D>> take(D d, V& v) {
    const auto bits = hn::And(v, hn::Set(d, 0xFF000000U));
    v = hn::ShiftLeft<8>(v);
    return hn::ConvertTo(hn::Rebind<float, D>(), hn::BitCast(hn::Rebind<int32_t, D>(), bits));
  }
};

template <class Codes, size_t kM, class D, class VF>
HWY_INLINE void add_floats(D d, const Rows<kM>& rows, size_t unit, size_t bytes, VF* total) {
  const hn::Rebind<float, D> df;
  hn::Vec<D> words[4];
  VF sum[4][kM];
  ask_ahead<hn::MaxLanes(d) / 4>(rows, unit);
  PTERYX_UNROLL for (size_t r = 0; r < 4; ++r) {
    words[r] = Codes::sign(d, load_words(d, rows.weight[r] + unit * 16, bytes));
    PTERYX_UNROLL for (size_t m = 0; m < kM; ++m) sum[r][m] = hn::Zero(df);
  }
  PTERYX_UNROLL for (size_t j = 0; j < Codes::kPlanes; ++j) {
    VF x[kM];
    PTERYX_UNROLL for (size_t m = 0; m < kM; ++m) {
      x[m] = hn::Load(df, reinterpret_cast<const float*>(rows.x[m]) + unit * 4 * Codes::kPlanes +
                              j * hn::MaxLanes(df));
    }
    PTERYX_UNROLL for (size_t r = 0; r < 4; ++r) {
      const VF w = Codes::take(d, words[r]);
      PTERYX_UNROLL for (size_t m = 0; m < kM; ++m) sum[r][m] = hn::MulAdd(w, x[m], sum[r][m]);
    }
  }
  PTERYX_UNROLL for (size_t m = 0; m < kM; ++m) {
    const VF all = add_quads(df, sum[0][m], sum[1][m], sum[2][m], sum[3][m]);
    const VF scale = rows.scales != nullptr ? hn::LoadU(df, rows.scales + unit * 4)
                                            : hn::Set(df, Codes::kFactor);
    total[m] = hn::MulAdd(all, scale, total[m]);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pteryx::cpu
HWY_AFTER_NAMESPACE();

#endif
