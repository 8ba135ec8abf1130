// Units of weight, and x laid out for them: for products with few rows of x (product_few.cpp).
// Included once for each target.
//
// A unit is 128 bits of a row of weight: 32 nibbles or 16 bytes, as four words of 32 bits. A vector
// has several units, plane j of x has what the j-th codes of its words are multiplied by. What is
// left of a row after the last full vector is done unit by unit.
// SPDX-License-Identifier: BSD-3-Clause
#if defined(PTERYX_CPU_FEW_UNITS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PTERYX_CPU_FEW_UNITS_INL_H_
#undef PTERYX_CPU_FEW_UNITS_INL_H_
#else
#define PTERYX_CPU_FEW_UNITS_INL_H_
#endif

#include <algorithm>
#include <cmath>

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

// How a prepared row of x lies in memory: the planes, and for each word of weight a scale and what
// takes the offset of 8 back. Rows of f32 have one scale, for the sums.
struct RowLayout {
  size_t scales;
  size_t offsets;
  size_t bytes;
};
RowLayout layout_of(const Weight& weight, Precision precision) {
  const size_t units = units_of(weight);
  const size_t value = precision == Precision::kF16 ? sizeof(int16_t) : sizeof(float);
  RowLayout l{};
  l.scales = round_up(units * unit_codes(weight) * value, 64);
  const size_t lanes = round_up(units * 4 * sizeof(float), 64);
  const bool rounded = precision == Precision::kF16;
  l.offsets = l.scales + (rounded ? lanes : 64);
  l.bytes = l.offsets + (rounded && is_nibbles(weight.kind) ? lanes : 0);
  return l;
}

size_t row_bytes(const Weight& weight, Precision precision) {
  return layout_of(weight, precision).bytes;
}

// Where the values of a unit start, and how far its planes are apart.
struct Place {
  size_t start;
  size_t plane;
};
Place place_of(size_t unit, size_t units, size_t codes_of_unit) {
  const size_t in_vectors = units / kVectorUnits * kVectorUnits;
  const size_t planes = codes_of_unit / 4;
  if (unit >= in_vectors) return {unit * codes_of_unit, 4};
  const size_t first = unit / kVectorUnits * kVectorUnits;
  return {first * planes * 4 + (unit - first) * 4, kLanes};
}

void prepare_rounded(const Weight& weight, const float* x, void* to) {
  const RowLayout l = layout_of(weight, Precision::kF16);
  auto* bytes = static_cast<uint8_t*>(to);
  auto* words = reinterpret_cast<uint32_t*>(bytes);  // pairs of values
  auto* scales = reinterpret_cast<float*>(bytes + l.scales);
  auto* offsets = reinterpret_cast<int32_t*>(bytes + l.offsets);
  const size_t codes = unit_codes(weight);
  const size_t units = units_of(weight);
  const size_t planes = codes / 8;  // of pairs
  Rounded block;
  for (size_t unit = 0; unit < units; ++unit) {
    const size_t k = unit * codes;
    if (k % kBlock == 0) round_block(x + k, std::min(kBlock, weight.k - k), block);
    int16_t paired[kBlock];
    pair_up(weight.kind, block.values, paired);
    const int16_t* own = paired + k % kBlock;
    // Half as many planes as in place_of, of twice the size: two values in a word.
    const Place place = place_of(unit, units, codes / 2);
    for (size_t lane = 0; lane < 4; ++lane) {
      int32_t sum = 0;
      for (size_t j = 0; j < planes; ++j) {
        const int16_t* pair = own + (lane * planes + j) * 2;
        std::memcpy(words + place.start + j * place.plane + lane, pair, sizeof(uint32_t));
        sum += pair[0] + pair[1];
      }
      scales[unit * 4 + lane] = block.scale;
      if (is_nibbles(weight.kind)) offsets[unit * 4 + lane] = -8 * sum;
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
  void* scale = static_cast<uint8_t*>(to) + layout_of(weight, Precision::kF32).scales;
  *static_cast<float*>(scale) = 1.0F / down;
  const size_t codes = unit_codes(weight);
  const size_t units = units_of(weight);
  const size_t planes = codes / 4;
  const size_t flip = weight.kind == WeightKind::kHighFirst ? 1 : 0;
  for (size_t unit = 0; unit < units; ++unit) {
    const Place place = place_of(unit, units, codes);
    for (size_t lane = 0; lane < 4; ++lane) {
      for (size_t j = 0; j < planes; ++j) {
        const size_t k = unit * codes + lane * planes + ((planes - 1 - j) ^ flip);
        values[place.start + j * place.plane + lane] = k < weight.k ? x[k] * down : 0.0F;
      }
    }
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
