// Products with one to four rows of x: every weight is read once, unpacked in registers, and the
// sums of four rows of weight are brought together at the end of each vector.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pteryx/cpu/product_few.cpp"
#include <algorithm>
#include <cstring>

#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "pteryx/cpu/few_codes-inl.h"
#include "pteryx/cpu/product_parts.h"
#include "pteryx/cpu/vector-inl.h"

PTERYX_BEFORE_PAIRS();
namespace pteryx::cpu {
namespace HWY_NAMESPACE {
namespace {

#if PTERYX_HAS_BYTE_DOTS
using Nibbles = NibbleBytes;
#else
using Nibbles = NibblePairs;
#endif

// Four rows of weight with kM rows of x, a part of k: result r of m is added at sums[m * 4 + r].
template <class Codes, size_t kM>
HWY_NOINLINE void multiply_quad(const Rows<kM>& rows, size_t bytes, float* sums) {
  const Floats d;
  const FourFloats d4;
  hn::Vec<Floats> totals[kM];
  PTERYX_UNROLL for (size_t m = 0; m < kM; ++m) totals[m] = hn::Zero(d);
  size_t unit = rows.begin;
  for (; unit + kVectorUnits <= rows.end && (unit + kVectorUnits) * 16 <= bytes;
       unit += kVectorUnits) {
    add_step<Codes, kM>(rows, {unit, kLanes * 4, kLanes}, totals);
  }
  for (; unit < rows.end; unit += kVectorUnits) {  // a last vector that the row does not fill
    const size_t units = std::min(rows.end - unit, kVectorUnits);
    add_step<Codes, kM>(rows, {unit, bytes - unit * 16, units * 4}, totals);
  }
  PTERYX_UNROLL for (size_t m = 0; m < kM; ++m)
      hn::Store(hn::Add(add_blocks(d, totals[m]), hn::Load(d4, sums + m * 4)), d4, sums + m * 4);
}

constexpr size_t kPartUnits = 64;    // of k, see part_units
constexpr size_t kPartLineBits = 4;  // lines of 64 bytes of a row in a part

// Rows of weight whose scales are gathered at once. Groups of long rows have their scales in many
// pages, of which more is then read at a time.
size_t chunk_rows(const Weight& weight) {
  return weight.half_scales != nullptr || weight.k >= 1024 ? kMostChunk : 16;
}

// Units of k that are multiplied at once: of long rows as many as leave room for x in the
// first-level cache beside the weights that pass through it.
size_t part_units(const Weight& weight) {
  const size_t units = units_of(weight);
  return units <= 2 * kPartUnits ? units : kPartUnits;
}

// Units of k of rows of weight from n on.
struct Range {
  size_t n;
  size_t count;
  size_t begin;  // units
  size_t end;
};

// Numbers that lie in rows of one for each n: four rows together, [count / 4, units, 4].
HWY_INLINE void gather_floats(const Weight& weight, const float* numbers, const Range& range,
                              float* to) {
  const size_t chunk = chunk_rows(weight);
  const size_t units = range.end - range.begin;
  const FourFloats d;
  for (size_t unit = 0; unit < units; ++unit) {
    const size_t group = (range.begin + unit) * kBlock / weight.group;
    const float* from = numbers + group * weight.scale_row + range.n;
    for (size_t r = 0; r < chunk; r += 16) hwy::Prefetch(from + chunk + r);
    for (size_t r = 0; r < range.count; r += 4) {
      const size_t left = range.count - r;
      const auto v = left >= 4 ? hn::LoadU(d, from + r) : load_part(d, from + r, left);
      hn::Store(v, d, to + r * units + unit * 4);
    }
  }
}

// Numbers of four rows or fewer that lie in blocks of eight: where they are, if these are half a
// block in which each unit has numbers of its own; else they are gathered.
HWY_INLINE Numbers find_halves(const Weight& weight, const uint16_t* numbers, const Range& range,
                               size_t r, float* to) {
  const FourFloats d;
  const hn::Rebind<uint16_t, FourFloats> d16;
  const size_t n = range.n + r;
  const size_t own = std::min<size_t>(4, range.count - r);
  if (n % 4 == 0 && own == 4 && weight.group == kBlock)
    return {.halves = numbers + n / 8 * weight.scale_row, .last = n % 8 != 0};
  for (size_t unit = range.begin; unit < range.end; ++unit) {
    const uint16_t* at = numbers + unit * kBlock / weight.group * 8;
    HWY_ALIGN uint16_t halves[4] = {};
    for (size_t i = 0; i < own; ++i) halves[i] = at[(n + i) / 8 * weight.scale_row + (n + i) % 8];
    hn::Store(widen_halves(d, hn::Load(d16, halves)), d, to + (unit - range.begin) * 4);
  }
  return {.floats = to};
}

// Scales, or minimums, of a chunk of rows of weight.
struct Chunk {
  const uint16_t* halves;  // where they lie in blocks
  const float* floats;
  float* gathered;

  HWY_INLINE void gather(const Weight& weight, const Range& range) const {
    if (halves == nullptr && floats != nullptr) gather_floats(weight, floats, range, gathered);
  }
  HWY_INLINE Numbers of_rows(const Weight& weight, const Range& range, size_t r) const {
    if (halves != nullptr) return find_halves(weight, halves, range, r, gathered);
    if (floats != nullptr) return {.floats = gathered + r * (range.end - range.begin)};
    return {};
  }
};

// What to ask memory for while these are used: those of the block after the next.
HWY_INLINE const uint8_t* next_numbers(const Weight& weight, const Numbers& numbers,
                                       const uint8_t* otherwise) {
  if (numbers.halves == nullptr) return otherwise;
  return reinterpret_cast<const uint8_t*>(numbers.halves + 2 * weight.scale_row);
}

// Of all sums with a prepared row of x.
HWY_INLINE float row_scale(const uint8_t* x, const RowLayout& layout, Precision precision) {
  const void* scale = x + layout.scales;
  return precision == Precision::kF16 ? 1.0F : *static_cast<const float*>(scale);
}

// What follows the part of four rows at hand: the same part of the next four, or the next part of
// the first four of the chunk.
template <size_t kM>
HWY_INLINE void set_next(const Weight& w, const uint8_t* chunk, size_t rows_left, Rows<kM>& rows) {
  const bool whole = rows.begin == 0 && rows.end == units_of(w);
  if (whole) {
    rows.line_bits = 32;  // one after the other
    rows.next[0] = rows.weight[0] + std::max<size_t>(4 * w.row_bytes, 4096);
    return;
  }
  rows.line_bits = kPartLineBits;
  const uint8_t* first =
      rows_left > 4 ? rows.weight[0] + 4 * w.row_bytes + rows.begin * 16 : chunk + rows.end * 16;
  for (size_t i = 0; i < 4; ++i) rows.next[i] = first + i * w.row_bytes;
}

template <class Codes, size_t kM>
void multiply_codes(const Product& p, Precision precision) {
  const Weight& w = p.weight;
  const size_t units = units_of(w);
  const size_t part = part_units(w);
  const size_t bytes = is_nibbles(w.kind) ? (w.k + 1) / 2 : w.k;
  const bool grouped = is_nibbles(w.kind);
  const size_t chunk = chunk_rows(w);
  auto* const scratch = static_cast<float*>(p.scratch);
  const Chunk scales{w.half_scales, grouped ? w.scales : nullptr, scratch};
  const Chunk minimums{w.half_minimums, w.minimums, scratch + kMostChunk * blocks_of(w.k)};
  Rows<kM> rows{};
  rows.layout = layout_of(w, precision);
  for (size_t m = 0; m < kM; ++m)
    rows.x[m] = static_cast<const uint8_t*>(p.prepared) + m * rows.layout.bytes;
  HWY_ALIGN float sums[kMostChunk * kM];  // of four rows: [kM, 4]
  for (size_t n = p.n_begin; n < p.n_end; n += chunk) {
    const size_t count = std::min(chunk, p.n_end - n);
    const uint8_t* data = static_cast<const uint8_t*>(w.data) + n * w.row_bytes;
    std::memset(sums, 0, sizeof(sums));
    for (rows.begin = 0; rows.begin < units; rows.begin = rows.end) {
      rows.end = std::min(rows.begin + part, units);
      const Range range{n, count, rows.begin, rows.end};
      scales.gather(w, range);
      minimums.gather(w, range);
      for (size_t r = 0; r < count; r += 4) {
        const size_t own = std::min<size_t>(4, count - r);
        for (size_t i = 0; i < 4; ++i)
          rows.weight[i] = data + (r + std::min(i, own - 1)) * w.row_bytes;
        set_next(w, data, count - r, rows);
        rows.scales = scales.of_rows(w, range, r);
        rows.minimums = minimums.of_rows(w, range, r);
        rows.next_scales = next_numbers(w, rows.scales, rows.weight[0]);
        rows.next_minimums = next_numbers(w, rows.minimums, rows.weight[0]);
        multiply_quad<Codes, kM>(rows, bytes, sums + r * kM);
      }
    }
    for (size_t m = 0; m < kM; ++m) {
      const FourFloats d;
      const auto up = hn::Set(d, row_scale(rows.x[m], rows.layout, precision));
      float* const y = p.y + m * p.y_row + n;
      for (size_t r = 0; r < count; r += 4) {
        const size_t own = std::min<size_t>(4, count - r);
        auto sum = hn::Load(d, sums + r * kM + m * 4);
        if (!grouped) sum = hn::Mul(sum, load_part(d, w.scales + n + r, own));
        sum = hn::Mul(sum, up);
        if (own == 4) {
          hn::StoreU(sum, d, y + r);
        } else {
          store_part(sum, d, y + r, own);
        }
      }
    }
  }
}

// Weights that are floats: x as it is.
template <class T, size_t kM>
void multiply_floats(const Product& p) {
  const Floats d;
  using V = hn::Vec<Floats>;
  const Weight& w = p.weight;
  for (size_t n = p.n_begin; n < p.n_end; n += 4) {
    const size_t own = std::min<size_t>(4, p.n_end - n);
    const T* row[4];
    V sum[4][kM];
    PTERYX_UNROLL for (size_t r = 0; r < 4; ++r) {
      const uint8_t* at =
          static_cast<const uint8_t*>(w.data) + (n + std::min(r, own - 1)) * w.row_bytes;
      row[r] = reinterpret_cast<const T*>(at);
      PTERYX_UNROLL for (size_t m = 0; m < kM; ++m) sum[r][m] = hn::Zero(d);
    }
    size_t k = 0;
    for (; k + kLanes <= w.k; k += kLanes) {
      V x[kM];
      PTERYX_UNROLL for (size_t m = 0; m < kM; ++m) x[m] = hn::LoadU(d, p.x + m * p.x_row + k);
      PTERYX_UNROLL for (size_t r = 0; r < 4; ++r) {
        const V v = load_floats(d, row[r] + k);
        PTERYX_UNROLL for (size_t m = 0; m < kM; ++m) sum[r][m] = hn::MulAdd(v, x[m], sum[r][m]);
      }
    }
    if (k < w.k) {
      V x[kM];
      PTERYX_UNROLL for (size_t m = 0; m < kM; ++m) x[m] =
          load_part(d, p.x + m * p.x_row + k, w.k - k);
      PTERYX_UNROLL for (size_t r = 0; r < 4; ++r) {
        const V v = load_floats_part(d, row[r] + k, w.k - k);
        PTERYX_UNROLL for (size_t m = 0; m < kM; ++m) sum[r][m] = hn::MulAdd(v, x[m], sum[r][m]);
      }
    }
    PTERYX_UNROLL for (size_t m = 0; m < kM; ++m) {
      const auto all = add_blocks(d, add_quads(d, sum[0][m], sum[1][m], sum[2][m], sum[3][m]));
      store_part(all, FourFloats(), p.y + m * p.y_row + n, own);
    }
  }
}

template <size_t kM>
void multiply_m(const Product& p, Precision precision) {
  const bool rounded = precision == Precision::kF16;
  switch (p.weight.kind) {
    case WeightKind::kLowFirst:
    case WeightKind::kHighFirst:
      return rounded ? multiply_codes<Nibbles, kM>(p, precision)
                     : multiply_codes<NibbleFloats, kM>(p, precision);
    case WeightKind::kBytes:
      return rounded ? multiply_codes<BytePairs, kM>(p, precision)
                     : multiply_codes<ByteFloats, kM>(p, precision);
    case WeightKind::kF32: return multiply_floats<float, kM>(p);
    case WeightKind::kF16: return multiply_floats<hwy::float16_t, kM>(p);
  }
}

void multiply_rows_few(const Product& p, Precision precision) {
  if (p.m == 1) multiply_m<1>(p, precision);
  if (p.m == 2) multiply_m<2>(p, precision);
  if (p.m == 3) multiply_m<3>(p, precision);
  if (p.m == 4) multiply_m<4>(p, precision);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pteryx::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pteryx::cpu {
HWY_EXPORT(row_bytes);
HWY_EXPORT(prepare_row);
HWY_EXPORT(multiply_rows_few);

size_t few_rows_bytes(const Weight& weight, Precision precision) {
  if (!has_codes(weight.kind)) return 0;
  return HWY_DYNAMIC_DISPATCH(row_bytes)(weight, precision);
}
size_t few_rows_scratch(const Weight& weight) {
  if (!is_nibbles(weight.kind)) return 0;
  return kMostChunk * blocks_of(weight.k) * sizeof(float) * (has_minimums(weight) ? 2 : 1);
}
void prepare_few(const Weight& weight, Precision precision, const float* x, void* prepared_row) {
  HWY_DYNAMIC_DISPATCH(prepare_row)(weight, precision, x, prepared_row);
}
void multiply_few(const Product& p, Precision precision) {
  HWY_DYNAMIC_DISPATCH(multiply_rows_few)(p, precision);
}
}  // namespace pteryx::cpu
#endif
