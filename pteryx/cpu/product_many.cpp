// Products with many rows of x: some rows of weight are unpacked into a panel that stays in the
// first-level cache, [k, columns] so that a vector has several rows of weight, and multiplied with
// all rows of x in tiles of registers.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pteryx/cpu/product_many.cpp"
#include <algorithm>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "pteryx/cpu/dot-inl.h"
#include "pteryx/cpu/product_parts.h"
#include "pteryx/cpu/rounding-inl.h"
#include "pteryx/cpu/vector-inl.h"

PTERYX_BEFORE_PAIRS();
namespace pteryx::cpu {
namespace HWY_NAMESPACE {
namespace {

constexpr size_t kColumns = kTileVectors * kLanes;  // rows of weight in a panel
constexpr size_t kPairDepth = 128;                  // of k, for panels of pairs of i16
constexpr size_t kFloatDepth = 64;                  // of k, for panels of f32

// A prepared row of x: pairs of i16 as pair_up leaves them, then a scale for each block and, where
// the weight has minimums, its sum.
size_t pairs_bytes(size_t k) { return round_up(blocks_of(k) * kBlock * sizeof(int16_t), 64); }
size_t numbers_bytes(size_t k) { return round_up(blocks_of(k) * sizeof(float), 64); }
size_t row_bytes_many(const Weight& weight) {
  return pairs_bytes(weight.k) + numbers_bytes(weight.k) * (has_minimums(weight) ? 2 : 1);
}

void prepare_row_many(const Weight& weight, const float* x, void* to) {
  auto* values = static_cast<int16_t*>(to);
  uint8_t* const behind = static_cast<uint8_t*>(to) + pairs_bytes(weight.k);
  auto* scales = reinterpret_cast<float*>(behind);
  auto* sums = reinterpret_cast<float*>(behind + numbers_bytes(weight.k));
  Rounded block;
  for (size_t k = 0; k < weight.k; k += kBlock) {
    round_block(x + k, std::min(kBlock, weight.k - k), block);
    pair_up(weight.kind, block.values, values + k);
    scales[k / kBlock] = block.scale;
    if (!has_minimums(weight)) continue;
    int32_t sum = 0;
    for (const int16_t v : block.values) sum += v;
    sums[k / kBlock] = static_cast<float>(sum) * block.scale;
  }
}

// What a thread works with.
struct Scratch {
  HWY_ALIGN uint32_t words[kFloatDepth * kColumns];  // of weight, transposed
  HWY_ALIGN float panel[kFloatDepth * kColumns];     // f32, or pairs of i16
  HWY_ALIGN float scales[kPairDepth / kBlock * kColumns];
  HWY_ALIGN float sums[kManyRows * kColumns];
};
static_assert(kPairDepth / 2 == kFloatDepth);

size_t scratch_size() { return sizeof(Scratch); }

// A part of the weight that becomes a panel.
struct Part {
  size_t n;
  size_t columns;  // that are rows of weight; the others repeat the last
  size_t k;
  size_t depth;
};

// Scales or minimums, in one of two forms.
struct Numbers {
  const float* floats;
  const uint16_t* halves;
};
HWY_INLINE Numbers scales_of(const Weight& w) { return {w.scales, w.half_scales}; }
HWY_INLINE Numbers minimums_of(const Weight& w) { return {w.minimums, w.half_minimums}; }

// Those of a group for all columns; those without a row of weight have 0.
HWY_INLINE void copy_numbers(const Weight& w, const Numbers& numbers, const Part& part, size_t k,
                             float factor, float* to) {
  const bool nibbles = is_nibbles(w.kind);
  if (nibbles && numbers.halves != nullptr) {
    const FourFloats d;
    HWY_ALIGN uint16_t halves[kColumns] = {};
    const uint16_t* of_group = numbers.halves + k / w.group * 8;
    for (size_t c = 0; c < part.columns;) {  // what a block has of them
      const size_t n = part.n + c;
      const size_t some = std::min(8 - n % 8, part.columns - c);
      std::memcpy(halves + c, of_group + n / 8 * w.scale_row + n % 8, some * sizeof(halves[0]));
      c += some;
    }
    for (size_t c = 0; c < kColumns; c += 4) {
      const auto v = widen_halves(d, hn::Load(hn::Rebind<uint16_t, FourFloats>(), halves + c));
      hn::Store(hn::Mul(v, hn::Set(d, factor)), d, to + c);
    }
    return;
  }
  const float* from = numbers.floats + (nibbles ? k / w.group * w.scale_row : 0) + part.n;
  for (size_t c = 0; c < kColumns; ++c) to[c] = c < part.columns ? from[c] * factor : 0.0F;
}

HWY_INLINE size_t code_bits(WeightKind kind) {
  if (is_nibbles(kind)) return 4;
  if (kind == WeightKind::kBytes) return 8;
  return kind == WeightKind::kF16 ? 16 : 32;
}

HWY_INLINE void read_words(const Weight& w, const Part& part, uint32_t* words) {
  const size_t bits = code_bits(w.kind);
  transpose_words(static_cast<const uint8_t*>(w.data) + part.n * w.row_bytes + part.k * bits / 8,
                  w.row_bytes, part.columns, (part.depth * bits + 7) / 8, words, kColumns);
}

// panel[pair, column] of signed codes; past the depth, up to whole blocks, x is 0.
HWY_INLINE void unpack_pairs(const Weight& w, const Part& part, Scratch& s) {
  const Words d;
  const Shorts d16;
  read_words(w, part, s.words);
  auto* panel = reinterpret_cast<int16_t*>(s.panel);
  const bool nibbles = is_nibbles(w.kind);
  const size_t planes = nibbles ? 4 : 2;
  const size_t words = round_up(part.depth, kBlock) / (2 * planes);
  for (size_t word = 0; word < words; ++word) {
    for (size_t c = 0; c < kColumns; c += kLanes) {
      auto v = hn::Load(d, s.words + word * kColumns + c);
      int16_t* to = panel + (word * planes * kColumns + c) * 2;
      if (nibbles) {
        const auto eight = hn::Set(d16, 8);
        PTERYX_UNROLL for (size_t j = 0; j < 4; ++j) {
          const auto codes = hn::BitCast(d16, hn::And(v, hn::Set(d, 0x000F000FU)));
          hn::Store(hn::Sub(codes, eight), d16, to + j * kColumns * 2);
          v = hn::ShiftRight<4>(v);
        }
      } else {
        const auto both = hn::BitCast(d16, v);
        hn::Store(hn::ShiftRight<8>(hn::ShiftLeft<8>(both)), d16, to);
        hn::Store(hn::ShiftRight<8>(both), d16, to + kColumns * 2);
      }
    }
  }
  for (size_t k = 0; k < part.depth; k += kBlock)
    copy_numbers(w, scales_of(w), part, part.k + k, 1.0F, s.scales + k / kBlock * kColumns);
}

// panel[k, column] of weights.
HWY_INLINE void unpack_floats(const Weight& w, const Part& part, Scratch& s) {
  const Words d;
  const Ints di;
  const Floats df;
  if (w.kind == WeightKind::kF32) {
    void* panel = s.panel;
    return read_words(w, part, static_cast<uint32_t*>(panel));
  }
  read_words(w, part, s.words);
  if (w.kind == WeightKind::kF16) return widen_pairs(s.words, part.depth, kColumns, s.panel);
  const bool nibbles = is_nibbles(w.kind);
  const size_t flip = w.kind == WeightKind::kHighFirst ? 1 : 0;
  const size_t in_word = nibbles ? 8 : 4;
  const float factor = 1.0F / static_cast<float>(1U << (nibbles ? 28U : 24U));
  float* const minimums = s.scales + kColumns;
  if (!has_minimums(w)) std::memset(minimums, 0, kColumns * sizeof(float));
  for (size_t k = 0; k < part.depth; k += in_word) {
    if (k % kBlock == 0) {
      copy_numbers(w, scales_of(w), part, part.k + k, factor, s.scales);
      if (has_minimums(w)) copy_numbers(w, minimums_of(w), part, part.k + k, 1.0F, minimums);
    }
    for (size_t c = 0; c < kColumns; c += kLanes) {
      auto v = hn::Load(d, s.words + k / in_word * kColumns + c);
      const auto scale = hn::Load(df, s.scales + c);
      const auto minimum = hn::Load(df, minimums + c);
      float* to = s.panel + k * kColumns + c;
      if (nibbles) {
        v = hn::Xor(v, hn::Set(d, 0x88888888U));
        PTERYX_UNROLL for (size_t j = 8; j-- > 0;) {
          const auto code = hn::BitCast(di, hn::And(v, hn::Set(d, 0xF0000000U)));
          hn::Store(hn::MulAdd(hn::ConvertTo(df, code), scale, minimum), df,
                    to + (j ^ flip) * kColumns);
          v = hn::ShiftLeft<4>(v);
        }
      } else {
        PTERYX_UNROLL for (size_t j = 4; j-- > 0;) {
          const auto code = hn::BitCast(di, hn::And(v, hn::Set(d, 0xFF000000U)));
          hn::Store(hn::Mul(hn::ConvertTo(df, code), scale), df, to + j * kColumns);
          v = hn::ShiftLeft<8>(v);
        }
      }
    }
  }
}

// Adds the products of kRows rows of x and a panel of whole blocks to sums[row, column].
template <size_t kRows>
HWY_INLINE void multiply_pairs(const uint8_t* HWY_RESTRICT x, size_t x_row, size_t scales_at,
                               size_t block, size_t blocks, const Scratch& s,
                               float* HWY_RESTRICT sums) {
  const Ints d;
  const Shorts d16;
  const Floats df;
  using VI = hn::Vec<Ints>;
  const auto* panel = reinterpret_cast<const int16_t*>(s.panel);
  for (size_t b = 0; b < blocks; ++b) {
    VI even[kRows][kTileVectors];
    VI odd[kRows][kTileVectors];
    PTERYX_UNROLL for (size_t r = 0; r < kRows; ++r) {
      PTERYX_UNROLL for (size_t v = 0; v < kTileVectors; ++v) even[r][v] = odd[r][v] = hn::Zero(d);
    }
    const uint8_t* pairs = x + (block + b) * kBlock * sizeof(int16_t);
    for (size_t pair = 0; pair < kBlock / 2; ++pair) {
      hn::Vec<Shorts> w[kTileVectors];
      PTERYX_UNROLL for (size_t v = 0; v < kTileVectors; ++v) w[v] =
          hn::Load(d16, panel + ((b * kBlock / 2 + pair) * kColumns + v * kLanes) * 2);
      PTERYX_UNROLL for (size_t r = 0; r < kRows; ++r) {
        int32_t both;
        std::memcpy(&both, pairs + r * x_row + pair * sizeof(both), sizeof(both));
        const auto values = hn::BitCast(d16, hn::Set(d, both));
        PTERYX_UNROLL for (size_t v = 0; v < kTileVectors; ++v) {
          even[r][v] = add_pairs(d, w[v], values, even[r][v], odd[r][v]);
        }
      }
    }
    PTERYX_UNROLL for (size_t r = 0; r < kRows; ++r) {
      const void* x_scales = x + r * x_row + scales_at;
      const auto x_scale = hn::Set(df, static_cast<const float*>(x_scales)[block + b]);
      PTERYX_UNROLL for (size_t v = 0; v < kTileVectors; ++v) {
        float* to = sums + r * kColumns + v * kLanes;
        const auto scale = hn::Mul(hn::Load(df, s.scales + b * kColumns + v * kLanes), x_scale);
        const auto sum = hn::ConvertTo(df, hn::RearrangeToOddPlusEven(even[r][v], odd[r][v]));
        hn::Store(hn::MulAdd(sum, scale, hn::Load(df, to)), df, to);
      }
    }
  }
}

HWY_INLINE void multiply_panel_pairs(const Product& p, size_t first, size_t rows, const Part& part,
                                     Scratch& s) {
  const size_t x_row = row_bytes_many(p.weight);
  const size_t scales_at = pairs_bytes(p.weight.k);
  const uint8_t* x = static_cast<const uint8_t*>(p.prepared) + first * x_row;
  const size_t block = part.k / kBlock;
  const size_t blocks = blocks_of(part.depth);
  float* sums = s.sums;
  for (; rows >= kTileRows; rows -= kTileRows) {
    multiply_pairs<kTileRows>(x, x_row, scales_at, block, blocks, s, sums);
    x += kTileRows * x_row;
    sums += kTileRows * kColumns;
  }
  if (rows == 3) multiply_pairs<3>(x, x_row, scales_at, block, blocks, s, sums);
  if (rows == 2) multiply_pairs<2>(x, x_row, scales_at, block, blocks, s, sums);
  if (rows == 1) multiply_pairs<1>(x, x_row, scales_at, block, blocks, s, sums);
}

// Adds the minimums of all k, times the sums of x that were prepared: a small product of floats.
HWY_INLINE void multiply_minimums(const Product& p, size_t first, size_t rows, size_t n,
                                  size_t columns, Scratch& s) {
  const Weight& w = p.weight;
  const size_t x_row = row_bytes_many(w);
  const void* sums = static_cast<const uint8_t*>(p.prepared) + first * x_row + pairs_bytes(w.k) +
                     numbers_bytes(w.k);
  const Part part{n, columns, 0, 0};
  for (size_t block = 0; block < blocks_of(w.k); block += kFloatDepth) {
    const size_t depth = std::min(kFloatDepth, blocks_of(w.k) - block);
    for (size_t b = 0; b < depth; ++b)
      copy_numbers(w, minimums_of(w), part, (block + b) * kBlock, 1.0F, s.panel + b * kColumns);
    multiply_rows<kTileVectors>(rows, static_cast<const float*>(sums) + block,
                                x_row / sizeof(float), s.panel, kColumns, depth, s.sums, kColumns);
  }
}

void multiply_rows_many(const Product& p, Precision precision) {
  const Weight& w = p.weight;
  const bool rounded = precision == Precision::kF16 && has_codes(w.kind);
  const size_t depth = rounded ? kPairDepth : kFloatDepth;
  Scratch& s = *static_cast<Scratch*>(p.scratch);
  for (size_t n = p.n_begin; n < p.n_end; n += kColumns) {
    const size_t columns = std::min(kColumns, p.n_end - n);
    for (size_t first = 0; first < p.m; first += kManyRows) {
      const size_t rows = std::min(kManyRows, p.m - first);
      std::memset(s.sums, 0, rows * kColumns * sizeof(float));
      for (size_t k = 0; k < w.k; k += depth) {
        const Part part{n, columns, k, std::min(depth, w.k - k)};
        if (rounded) {
          unpack_pairs(w, part, s);
          multiply_panel_pairs(p, first, rows, part, s);
        } else {
          unpack_floats(w, part, s);
          multiply_rows<kTileVectors>(rows, p.x + first * p.x_row + k, p.x_row, s.panel, kColumns,
                                      part.depth, s.sums, kColumns);
        }
      }
      if (rounded && has_minimums(w)) multiply_minimums(p, first, rows, n, columns, s);
      for (size_t r = 0; r < rows; ++r)
        std::memcpy(p.y + (first + r) * p.y_row + n, s.sums + r * kColumns,
                    columns * sizeof(float));
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pteryx::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pteryx::cpu {
HWY_EXPORT(row_bytes_many);
HWY_EXPORT(scratch_size);
HWY_EXPORT(prepare_row_many);
HWY_EXPORT(multiply_rows_many);

size_t many_rows_bytes(const Weight& weight, Precision precision) {
  if (!has_codes(weight.kind) || precision == Precision::kF32) return 0;
  return HWY_DYNAMIC_DISPATCH(row_bytes_many)(weight);
}
size_t many_rows_scratch() { return HWY_DYNAMIC_DISPATCH(scratch_size)(); }
void prepare_many(const Weight& weight, const float* x, void* prepared_row) {
  HWY_DYNAMIC_DISPATCH(prepare_row_many)(weight, x, prepared_row);
}
void multiply_many(const Product& p, Precision precision) {
  HWY_DYNAMIC_DISPATCH(multiply_rows_many)(p, precision);
}
}  // namespace pteryx::cpu
#endif
