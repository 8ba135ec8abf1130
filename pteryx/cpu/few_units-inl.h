// Units of weight, and x laid out for them: for products with few rows of x (product_few.cpp).
// Included once for each target.
//
// A unit is 128 bits of a row of weight: 32 nibbles or 16 bytes, as four words of 32 bits. A vector
// has several units, plane j of x has what the j-th codes of its words are multiplied by. Behind
// the last unit x is 0, up to a whole vector.
// SPDX-License-Identifier: BSD-3-Clause
#if defined(PTERYX_CPU_FEW_UNITS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PTERYX_CPU_FEW_UNITS_INL_H_
#undef PTERYX_CPU_FEW_UNITS_INL_H_
#else
#define PTERYX_CPU_FEW_UNITS_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "pteryx/cpu/dot-inl.h"
#include "pteryx/cpu/product_parts.h"
#include "pteryx/cpu/rounding-inl.h"
#include "pteryx/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pteryx::cpu {
namespace HWY_NAMESPACE {
namespace {

constexpr size_t kVectorUnits = kLanes / 4;

size_t unit_codes(const Weight& weight) { return is_nibbles(weight.kind) ? 32 : 16; }
size_t units_of(const Weight& weight) {
  return (weight.k + unit_codes(weight) - 1) / unit_codes(weight);
}

size_t whole_units(const Weight& weight) { return round_up(units_of(weight), kVectorUnits); }

// How a prepared row of x lies in memory: the planes, and for each word of weight a scale and what
// takes the offset of 8 back in its unit. Rows of f32 have one scale, for the sums. Where the
// weight has minimums, the sum of the values of its unit for each word.
struct RowLayout {
  size_t scales;
  size_t offsets;
  size_t sums;
  size_t bytes;
};
RowLayout layout_of(const Weight& weight, Precision precision) {
  const size_t units = whole_units(weight);
  const size_t value = precision == Precision::kF16 ? sizeof(int16_t) : sizeof(float);
  RowLayout l{};
  l.scales = round_up(units * unit_codes(weight) * value, 64);
  const size_t lanes = round_up(units * 4 * sizeof(float), 64);
  const bool rounded = precision == Precision::kF16;
  l.offsets = l.scales + (rounded ? lanes : 64);
  l.sums = l.offsets + (rounded && is_nibbles(weight.kind) ? lanes : 0);
  l.bytes = l.sums + (has_minimums(weight) ? lanes : 0);
  return l;
}

size_t row_bytes(const Weight& weight, Precision precision) {
  return layout_of(weight, precision).bytes;
}

// Where the first plane of a unit starts; planes are kLanes values (or pairs of them) apart.
size_t place_of(size_t unit, size_t planes) {
  return unit / kVectorUnits * planes * kLanes + unit % kVectorUnits * 4;
}

// Of the values from k on, how many a block has.
size_t block_count(const Weight& weight, size_t k) {
  return k < weight.k ? std::min(kBlock, weight.k - k) : 0;
}

#if PTERYX_HAS_BYTE_DOTS
// The values of a unit of nibbles as bytes: what low nibbles are multiplied by, then what high ones
// are; the upper halves of both, then the lower ones, signed. Gives the sum of the values.
HWY_INLINE int32_t place_values(WeightKind kind, const int16_t* values, uint32_t* to) {
  const hn::FixedTag<int16_t, 32> d16;
  const hn::FixedTag<uint32_t, 16> du;
  const hn::FixedTag<int32_t, 16> d32;
  // By halves, as they were stored: what two stores wrote is not there yet for one load.
  const hn::Half<decltype(d16)> half;
  const auto lower = hn::Combine(d16, hn::Load(half, values + 16), hn::Load(half, values));
  const auto upper = hn::ShiftRight<8>(hn::Add(lower, hn::Set(d16, 128)));
  const hn::Vec<decltype(du)> halves[2] = {hn::BitCast(du, upper), hn::BitCast(du, lower)};
  const size_t odd = kind == WeightKind::kHighFirst ? 0 : 1;  // which plane odd k are in
  PTERYX_UNROLL for (size_t i = 0; i < 2; ++i) {
    auto* const first = reinterpret_cast<__m128i*>(to + (2 * i) * kLanes);
    auto* const second = reinterpret_cast<__m128i*>(to + (2 * i + 1) * kLanes);
    // Highway's own TruncateTo takes other bytes here.
    _mm_store_si128(odd == 1 ? first : second, _mm512_cvtepi32_epi8(halves[i].raw));
    _mm_store_si128(odd == 1 ? second : first,
                    _mm512_cvtepi32_epi8(hn::ShiftRight<16>(halves[i]).raw));
  }
  const auto pair = hn::BitCast(d32, lower);
  const auto sum = hn::Add(hn::ShiftRight<16>(hn::ShiftLeft<16>(pair)), hn::ShiftRight<16>(pair));
  return hn::GetLane(hn::SumOfLanes(d32, sum));
}
#else
// The values of a unit of nibbles as pairs: word j of all four lanes in plane j. Gives the sum of
// the values.
HWY_INLINE int32_t place_values(WeightKind kind, const int16_t* values, uint32_t* to) {
  const hn::FixedTag<int16_t, 8> d16;
  const hn::FixedTag<int32_t, 4> d32;
  const hn::FixedTag<uint32_t, 4> du;
  const hn::FixedTag<uint64_t, 2> d64;
  hn::Vec<decltype(du)> lane[4];  // of which the four words are
  PTERYX_UNROLL for (size_t l = 0; l < 4; ++l) {
    const auto v = hn::LoadU(d16, values + l * 8);
    lane[l] = hn::BitCast(du, hn::InterleaveLower(d16, v, hn::ShiftRightBytes<8>(d16, v)));
    if (kind == WeightKind::kHighFirst) lane[l] = hn::Shuffle2301(lane[l]);
  }
  const auto low_a = hn::BitCast(d64, hn::InterleaveLower(du, lane[0], lane[1]));
  const auto low_b = hn::BitCast(d64, hn::InterleaveLower(du, lane[2], lane[3]));
  const auto high_a = hn::BitCast(d64, hn::InterleaveUpper(du, lane[0], lane[1]));
  const auto high_b = hn::BitCast(d64, hn::InterleaveUpper(du, lane[2], lane[3]));
  const hn::Vec<decltype(d64)> word[4] = {
      hn::InterleaveLower(d64, low_a, low_b), hn::InterleaveUpper(d64, low_a, low_b),
      hn::InterleaveLower(d64, high_a, high_b), hn::InterleaveUpper(d64, high_a, high_b)};
  auto sum = hn::Zero(d32);
  PTERYX_UNROLL for (size_t j = 0; j < 4; ++j) {
    hn::StoreU(hn::BitCast(du, word[j]), du, to + j * kLanes);
    const auto pair = hn::BitCast(d32, word[j]);
    const auto first = hn::ShiftRight<16>(hn::ShiftLeft<16>(pair));
    sum = hn::Add(sum, hn::Add(first, hn::ShiftRight<16>(pair)));
  }
  return hn::GetLane(hn::SumOfLanes(d32, sum));
}
#endif

void prepare_nibbles(const Weight& weight, const float* x, void* to) {
  const hn::FixedTag<int32_t, 4> d32;
  const hn::FixedTag<float, 4> df;
  const RowLayout l = layout_of(weight, Precision::kF16);
  auto* bytes = static_cast<uint8_t*>(to);
  auto* words = reinterpret_cast<uint32_t*>(bytes);  // pairs of values
  auto* scales = reinterpret_cast<float*>(bytes + l.scales);
  auto* offsets = reinterpret_cast<int32_t*>(bytes + l.offsets);
  auto* sums = reinterpret_cast<float*>(bytes + l.sums);
  Rounded block;
  for (size_t unit = 0; unit < whole_units(weight); ++unit) {
    const size_t k = unit * kBlock;
    round_block(x + std::min(k, weight.k), block_count(weight, k), block);
    const int32_t sum = place_values(weight.kind, block.values, words + place_of(unit, 4));
    hn::Store(hn::Set(df, block.scale), df, scales + unit * 4);
    hn::Store(hn::Set(d32, -8 * sum), d32, offsets + unit * 4);
    if (!has_minimums(weight)) continue;
    hn::Store(hn::Set(df, static_cast<float>(sum) * block.scale), df, sums + unit * 4);
  }
}

void prepare_rounded(const Weight& weight, const float* x, void* to) {
  if (is_nibbles(weight.kind)) return prepare_nibbles(weight, x, to);
  const RowLayout l = layout_of(weight, Precision::kF16);
  auto* bytes = static_cast<uint8_t*>(to);
  auto* words = reinterpret_cast<uint32_t*>(bytes);  // pairs of values
  auto* scales = reinterpret_cast<float*>(bytes + l.scales);
  const size_t codes = unit_codes(weight);
  const size_t planes = codes / 8;  // of pairs
  Rounded block;
  for (size_t unit = 0; unit < whole_units(weight); ++unit) {
    const size_t k = unit * codes;
    if (k % kBlock == 0) round_block(x + std::min(k, weight.k), block_count(weight, k), block);
    int16_t paired[kBlock];
    pair_up(weight.kind, block.values, paired);
    const int16_t* own = paired + k % kBlock;
    uint32_t* const place = words + place_of(unit, planes);
    for (size_t lane = 0; lane < 4; ++lane) {
      for (size_t j = 0; j < planes; ++j) {
        const int16_t* pair = own + (lane * planes + j) * 2;
        std::memcpy(place + j * kLanes + lane, pair, sizeof(uint32_t));
      }
      scales[unit * 4 + lane] = block.scale;
    }
  }
}

// What f32 values are scaled down by: codes come as large as 2^31, 16 of them are summed up before
// their scale.
float down_scale(const float* x, size_t count) {
  constexpr float kMost = 0x1p90F;
  float largest = 0;
  for (size_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(x[i]));
  return largest > kMost ? 0x1p-38F : 1.0F;
}

// f32 values; the planes go from the highest bits of a word to the lowest.
void prepare_floats(const Weight& weight, const float* x, void* to) {
  auto* values = static_cast<float*>(to);
  const float down = down_scale(x, weight.k);
  const RowLayout l = layout_of(weight, Precision::kF32);
  void* scale = static_cast<uint8_t*>(to) + l.scales;
  *static_cast<float*>(scale) = 1.0F / down;
  void* behind = static_cast<uint8_t*>(to) + l.sums;
  auto* sums = static_cast<float*>(behind);
  const size_t codes = unit_codes(weight);
  const size_t planes = codes / 4;
  const size_t flip = weight.kind == WeightKind::kHighFirst ? 1 : 0;
  for (size_t unit = 0; unit < whole_units(weight); ++unit) {
    float* const place = values + place_of(unit, planes);
    for (size_t lane = 0; lane < 4; ++lane) {
      for (size_t j = 0; j < planes; ++j) {
        const size_t k = unit * codes + lane * planes + ((planes - 1 - j) ^ flip);
        place[j * kLanes + lane] = k < weight.k ? x[k] * down : 0.0F;
      }
    }
    if (!has_minimums(weight)) continue;
    double total = 0;
    for (size_t k = unit * codes; k < std::min((unit + 1) * codes, weight.k); ++k)
      total += static_cast<double>(x[k] * down);
    for (size_t lane = 0; lane < 4; ++lane) sums[unit * 4 + lane] = static_cast<float>(total);
  }
}

void prepare_row(const Weight& weight, Precision precision, const float* x, void* to) {
  if (precision == Precision::kF16) return prepare_rounded(weight, x, to);
  prepare_floats(weight, x, to);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pteryx::cpu
HWY_AFTER_NAMESPACE();

#endif
