// Codes of four rows of weight times few rows of x (product_few.cpp). Included once for each
// target.
// SPDX-License-Identifier: BSD-3-Clause
#if defined(PTERYX_CPU_FEW_CODES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PTERYX_CPU_FEW_CODES_INL_H_
#undef PTERYX_CPU_FEW_CODES_INL_H_
#else
#define PTERYX_CPU_FEW_CODES_INL_H_
#endif

#include "pteryx/cpu/dot-inl.h"
#include "pteryx/cpu/few_units-inl.h"

PTERYX_BEFORE_PAIRS();
namespace pteryx::cpu {
namespace HWY_NAMESPACE {
namespace {

// What codes are multiplied as.
enum class Way : uint8_t { kBytes, kPairs, kFloats };

// 16-bit values out of words: nibbles with their offset of 8, bytes with their sign.
struct NibblePairs {
  static constexpr Way kWay = Way::kPairs;
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
  static constexpr Way kWay = Way::kPairs;
  static constexpr size_t kPlanes = 2;
  static constexpr bool kOffset = false;
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE hn::Vec<hn::Repartition<int16_t, D>> take(D, V& v, size_t j) {
    const hn::Repartition<int16_t, D> d16;
    const auto both = hn::BitCast(d16, v);
    return hn::ShiftRight<8>(j == 0 ? hn::ShiftLeft<8>(both) : both);
  }
};

// Numbers of four rows of weight for each unit, scales or minimums: of blocks of eight rows of f16
// the first or the last four, from the first unit on; or f32, [units of the part, 4]. None where
// both are null. Minimums are held as scales are.
struct Numbers {
  const uint16_t* halves = nullptr;
  const float* floats = nullptr;
  bool last = false;

  bool there() const { return halves != nullptr || floats != nullptr; }
};

// What a range of rows of weight works with.
template <size_t kM>
struct Rows {
  const uint8_t* weight[4];
  const uint8_t* x[kM];  // prepared
  RowLayout layout;
  Numbers scales;  // none where they come last
  Numbers minimums;
  // The units of k that are multiplied at once.
  size_t begin;
  size_t end;
  // What to ask memory for meanwhile: 2^line_bits lines of 64 bytes of each, one after the other.
  const uint8_t* next[4];
  size_t line_bits;
  // And of numbers in halves, 16 bytes of each unit; any other memory where there are none.
  const uint8_t* next_scales;
  const uint8_t* next_minimums;
};

// A vector of each row of weight: the units from `unit` on, with so many bytes in a row, and so
// many numbers of four rows.
struct Step {
  size_t unit;
  size_t bytes;
  size_t numbers;
};

// Words from `bytes` bytes, or from as many as a vector has; the rest is 0.
HWY_INLINE hn::Vec<Words> load_words(const void* from, size_t bytes) {
  const Words d;
  const hn::Repartition<uint8_t, Words> d8;
  const auto* const at = static_cast<const uint8_t*>(from);
  if (bytes >= kLanes * 4) return hn::BitCast(d, hn::LoadU(d8, at));
#if !HWY_MEM_OPS_MIGHT_FAULT  // else words would have to be aligned, for nothing gained
  if (bytes % 4 == 0) return load_part(d, reinterpret_cast<const uint32_t*>(at), bytes / 4);
#endif
  return hn::BitCast(d, load_part(d8, at, bytes));
}

// [units, 4]; 0 behind the last unit.
template <size_t kM>
HWY_INLINE hn::Vec<Floats> load_numbers(const Rows<kM>& rows, const Numbers& numbers,
                                        const Step& step) {
  const Floats d;
  const hn::Repartition<uint16_t, Words> d16;
  const hn::Repartition<uint64_t, Words> d64;
  if (numbers.halves == nullptr) {
    const float* const at = numbers.floats + (step.unit - rows.begin) * 4;
    return step.numbers == kLanes ? hn::LoadU(d, at) : load_part(d, at, step.numbers);
  }
  const auto words = load_words(numbers.halves + step.unit * 8, step.numbers * 4);
  const auto fours = hn::BitCast(d64, words);
  const auto own =
      numbers.last ? hn::ConcatOdd(d64, fours, fours) : hn::ConcatEven(d64, fours, fours);
  return widen_halves(d, hn::LowerHalf(hn::Half<decltype(d16)>(), hn::BitCast(d16, own)));
}

// Asks for weights in the order of their addresses, as many bytes as four rows use of a vector's
// units: the processor follows one stream better than four short ones. Into the second-level cache:
// in the first they would take the place of x. And for numbers in halves.
template <size_t kM>
HWY_INLINE void ask_ahead(const Rows<kM>& rows, size_t unit) {
  const size_t line = unit - rows.begin;
  const size_t row = line >> rows.line_bits;
  const uint8_t* next = rows.next[row] + (line - (row << rows.line_bits)) * 64;
  PTERYX_UNROLL for (size_t i = 0; i < kVectorUnits; ++i) __builtin_prefetch(next + i * 64, 0, 2);
  __builtin_prefetch(rows.next_scales + unit * 16, 0, 2);
  __builtin_prefetch(rows.next_minimums + unit * 16, 0, 2);
}

// Adds the products of a step, [units, 4 rows], to the total of a row of x, and those of the
// minimums.
template <size_t kM, class V>
HWY_INLINE void add_products(const Rows<kM>& rows, const Step& step, size_t m, V products, V scale,
                             V& total) {
  total = hn::MulAdd(products, scale, total);
  if (!rows.minimums.there()) return;
  const void* x_sums = rows.x[m] + rows.layout.sums;
  const V sums = hn::Load(Floats(), static_cast<const float*>(x_sums) + step.unit * 4);
  total = hn::MulAdd(load_numbers(rows, rows.minimums, step), sums, total);
}

// The same of sums of codes with rounded x.
template <size_t kM, class VI>
HWY_INLINE void add_rounded_products(const Rows<kM>& rows, const Step& step, size_t m, VI sums,
                                     hn::Vec<Floats> weight_scale, hn::Vec<Floats>& total) {
  const Floats d;
  const void* x_scales = rows.x[m] + rows.layout.scales;
  auto scale = hn::Load(d, static_cast<const float*>(x_scales) + step.unit * 4);
  if (rows.scales.there()) scale = hn::Mul(scale, weight_scale);
  add_products(rows, step, m, hn::ConvertTo(d, sums), scale, total);
}

// What takes the offset of codes back.
template <size_t kM>
HWY_INLINE hn::Vec<Ints> load_offsets(const Rows<kM>& rows, const Step& step, size_t m) {
  const void* offsets = rows.x[m] + rows.layout.offsets;
  return hn::Load(Ints(), static_cast<const int32_t*>(offsets) + step.unit * 4);
}

#if PTERYX_HAS_BYTE_DOTS
// Nibbles as bytes, with the bytes of x.
struct NibbleBytes {
  static constexpr Way kWay = Way::kBytes;
};
template <class Codes, size_t kM>
  requires(Codes::kWay == Way::kBytes)
HWY_INLINE void add_step(const Rows<kM>& rows, const Step& step, hn::Vec<Floats>* totals) {
  const hn::Repartition<uint8_t, Words> d8;
  const auto mask = hn::Set(d8, uint8_t{15});
  hn::Vec<decltype(d8)> low[4];
  hn::Vec<decltype(d8)> high[4];
  ask_ahead(rows, step.unit);
  PTERYX_UNROLL for (size_t r = 0; r < 4; ++r) {
    const auto words = load_words(rows.weight[r] + step.unit * 16, step.bytes);
    low[r] = hn::And(hn::BitCast(d8, words), mask);
    high[r] = hn::And(hn::BitCast(d8, hn::ShiftRight<4>(words)), mask);
  }
  const auto scale = load_numbers(rows, rows.scales, step);
  PTERYX_UNROLL for (size_t m = 0; m < kM; ++m) {
    const uint8_t* const x = rows.x[m] + step.unit * 64;
    ByteSums sums[2][4];  // upper halves of x, lower ones
    PTERYX_UNROLL for (size_t i = 0; i < 2; ++i) {
      const auto of_low = hn::Load(d8, x + (2 * i) * kLanes * 4);
      const auto of_high = hn::Load(d8, x + (2 * i + 1) * kLanes * 4);
      PTERYX_UNROLL for (size_t r = 0; r < 4; ++r) sums[i][r] =
          add_fours(high[r], of_high, add_fours(low[r], of_low, hn::Zero(Ints())));
    }
    const auto all = hn::Add(add_halves(sums[0], sums[1]), load_offsets(rows, step, m));
    add_rounded_products(rows, step, m, all, scale, totals[m]);
  }
}
#endif

template <class Codes, size_t kM>
  requires(Codes::kWay == Way::kPairs)
HWY_INLINE void add_step(const Rows<kM>& rows, const Step& step, hn::Vec<Floats>* totals) {
  const Words d;
  const Shorts d16;
  const Ints d32;
  using VI = hn::Vec<Ints>;
  hn::Vec<Words> words[4];
  VI sum[4][kM];
  VI odd[4][kM];
  ask_ahead(rows, step.unit);
  PTERYX_UNROLL for (size_t r = 0; r < 4; ++r) {
    words[r] = load_words(rows.weight[r] + step.unit * 16, step.bytes);
    PTERYX_UNROLL for (size_t m = 0; m < kM; ++m) sum[r][m] = odd[r][m] = hn::Zero(d32);
  }
  PTERYX_UNROLL for (size_t j = 0; j < Codes::kPlanes; ++j) {
    hn::Vec<Shorts> x[kM];
    PTERYX_UNROLL for (size_t m = 0; m < kM; ++m) {
      const auto* values = reinterpret_cast<const int16_t*>(rows.x[m]) +
                           step.unit * 8 * Codes::kPlanes + j * hn::MaxLanes(d16);
      x[m] = hn::Load(d16, values);
    }
    PTERYX_UNROLL for (size_t r = 0; r < 4; ++r) {
      const auto codes = Codes::take(d, words[r], j);
      PTERYX_UNROLL for (size_t m = 0; m < kM; ++m) sum[r][m] =
          add_pairs(d32, codes, x[m], sum[r][m], odd[r][m]);
    }
  }
  auto scale = hn::Zero(Floats());
  if (rows.scales.there()) scale = load_numbers(rows, rows.scales, step);
  PTERYX_UNROLL for (size_t m = 0; m < kM; ++m) {
    // All lanes of 128 bits are summed below, so it does not matter which has what.
    VI all = add_quads(d32, hn::Add(sum[0][m], odd[0][m]), hn::Add(sum[1][m], odd[1][m]),
                       hn::Add(sum[2][m], odd[2][m]), hn::Add(sum[3][m], odd[3][m]));
    if constexpr (Codes::kOffset) all = hn::Add(all, load_offsets(rows, step, m));
    add_rounded_products(rows, step, m, all, scale, totals[m]);
  }
}

// f32 values out of words, times 2^28 or 2^24: the highest bits, which have the sign.
struct NibbleFloats {
  static constexpr Way kWay = Way::kFloats;
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
  static constexpr Way kWay = Way::kFloats;
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

template <class Codes, size_t kM>
  requires(Codes::kWay == Way::kFloats)
HWY_INLINE void add_step(const Rows<kM>& rows, const Step& step, hn::Vec<Floats>* totals) {
  const Words d;
  const Floats df;
  using VF = hn::Vec<Floats>;
  hn::Vec<Words> words[4];
  VF sum[4][kM];
  ask_ahead(rows, step.unit);
  PTERYX_UNROLL for (size_t r = 0; r < 4; ++r) {
    words[r] = Codes::sign(d, load_words(rows.weight[r] + step.unit * 16, step.bytes));
    PTERYX_UNROLL for (size_t m = 0; m < kM; ++m) sum[r][m] = hn::Zero(df);
  }
  PTERYX_UNROLL for (size_t j = 0; j < Codes::kPlanes; ++j) {
    VF x[kM];
    PTERYX_UNROLL for (size_t m = 0; m < kM; ++m) {
      x[m] = hn::Load(df, reinterpret_cast<const float*>(rows.x[m]) +
                              step.unit * 4 * Codes::kPlanes + j * kLanes);
    }
    PTERYX_UNROLL for (size_t r = 0; r < 4; ++r) {
      const VF w = Codes::take(d, words[r]);
      PTERYX_UNROLL for (size_t m = 0; m < kM; ++m) sum[r][m] = hn::MulAdd(w, x[m], sum[r][m]);
    }
  }
  VF scale = hn::Set(df, Codes::kFactor);
  if (rows.scales.there()) scale = hn::Mul(load_numbers(rows, rows.scales, step), scale);
  PTERYX_UNROLL for (size_t m = 0; m < kM; ++m) {
    const VF all = add_quads(df, sum[0][m], sum[1][m], sum[2][m], sum[3][m]);
    add_products(rows, step, m, all, scale, totals[m]);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pteryx::cpu
HWY_AFTER_NAMESPACE();

#endif
