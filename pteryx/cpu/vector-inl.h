// Parts of vector code that all kernels share. Included once for each target.
// SPDX-License-Identifier: BSD-3-Clause
#if defined(PTERYX_CPU_VECTOR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PTERYX_CPU_VECTOR_INL_H_
#undef PTERYX_CPU_VECTOR_INL_H_
#else
#define PTERYX_CPU_VECTOR_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <hwy/highway.h>

#include "pteryx/cpu/halves-inl.h"

// Loops over the vectors of a tile: g++ keeps the tile in registers only when it unrolls them.
// Where vectors are emulated that takes minutes to compile, for nothing.
#undef PTERYX_UNROLL
#if HWY_TARGET == HWY_EMU128
#define PTERYX_UNROLL
#else
#define PTERYX_UNROLL _Pragma("GCC unroll 16")
#endif

HWY_BEFORE_NAMESPACE();
namespace pteryx::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Ints = hn::ScalableTag<int32_t>;
using Words = hn::ScalableTag<uint32_t>;
using Shorts = hn::ScalableTag<int16_t>;
using FourFloats = hn::FixedTag<float, 4>;
inline constexpr size_t kLanes = hn::MaxLanes(Floats());
// Registers for a tile of f32 sums, and for one of i32 sums (which takes two for each on NEON).
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
inline constexpr size_t kTileVectors = 4;
#else
inline constexpr size_t kTileVectors = 2;
#endif
inline constexpr size_t kTileRows = 4;

// Of every 128 bits: lane r has the sum of the four lanes of v_r. Each is summed in the same order.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V add_quads(D d, V v0, V v1, V v2, V v3) {
  const hn::Repartition<uint64_t, D> d64;
  const V v01 = hn::Add(hn::InterleaveLower(d, v0, v1), hn::InterleaveUpper(d, v0, v1));
  const V v23 = hn::Add(hn::InterleaveLower(d, v2, v3), hn::InterleaveUpper(d, v2, v3));
  const auto a = hn::BitCast(d64, v01);
  const auto b = hn::BitCast(d64, v23);
  return hn::Add(hn::BitCast(d, hn::InterleaveLower(d64, a, b)),
                 hn::BitCast(d, hn::InterleaveUpper(d64, a, b)));
}

// The sum of all parts of 128 bits.
template <class D, class V = hn::Vec<D>>
HWY_INLINE hn::Vec<FourFloats> add_blocks(D d, V v) {
  if constexpr (hn::MaxLanes(d) > 4) {
    const hn::Half<D> half;
    return add_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    return v;
  }
}

// Loads `count` values, fewer than a vector has; the rest is zero.
template <class D>
HWY_INLINE hn::Vec<D> load_part(D d, const hn::TFromD<D>* from, size_t count) {
#if !HWY_MEM_OPS_MIGHT_FAULT
  if constexpr (sizeof(hn::TFromD<D>) == 4) return hn::MaskedLoad(hn::FirstN(d, count), d, from);
#endif
  HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(d)] = {};
  std::memcpy(static_cast<void*>(lanes), from, count * sizeof(lanes[0]));
  return hn::Load(d, lanes);
}
template <class D>
HWY_INLINE void store_part(hn::Vec<D> v, D d, hn::TFromD<D>* to, size_t count) {
#if !HWY_MEM_OPS_MIGHT_FAULT
  if constexpr (sizeof(hn::TFromD<D>) == 4) return hn::BlendedStore(v, hn::FirstN(d, count), d, to);
#endif
  HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(d)];
  hn::Store(v, d, lanes);
  std::memcpy(static_cast<void*>(to), lanes, count * sizeof(lanes[0]));
}

// f32 from f32 or f16.
HWY_INLINE hn::Vec<Floats> load_floats(Floats d, const float* from) { return hn::LoadU(d, from); }
HWY_INLINE hn::Vec<Floats> load_floats(Floats d, const hwy::float16_t* from) {
  const hn::Rebind<hwy::float16_t, Floats> d16;
  const hn::Rebind<uint16_t, Floats> du16;
  return widen_halves(d, hn::BitCast(du16, hn::LoadU(d16, from)));
}
HWY_INLINE hn::Vec<Floats> load_floats_part(Floats d, const float* from, size_t count) {
  return load_part(d, from, count);
}
HWY_INLINE hn::Vec<Floats> load_floats_part(Floats d, const hwy::float16_t* from, size_t count) {
  const hn::Rebind<uint16_t, Floats> du16;
  HWY_ALIGN uint16_t lanes[hn::MaxLanes(d)] = {};
  std::memcpy(lanes, static_cast<const void*>(from), count * sizeof(lanes[0]));
  return widen_halves(d, hn::Load(du16, lanes));
}

// c[r, :] += sum over i < depth of a[r, i] * b[i, :], for kVectors vectors of columns.
template <size_t kRows, size_t kVectors>
HWY_INLINE void multiply_tile(const float* HWY_RESTRICT a, size_t a_row,
                              const float* HWY_RESTRICT b, size_t b_row, size_t depth,
                              float* HWY_RESTRICT c, size_t c_row) {
  const Floats d;
  hn::Vec<Floats> sum[kRows][kVectors];
  PTERYX_UNROLL for (size_t r = 0; r < kRows; ++r) {
    PTERYX_UNROLL for (size_t v = 0; v < kVectors; ++v) sum[r][v] =
        hn::LoadU(d, c + r * c_row + v * kLanes);
  }
  for (size_t i = 0; i < depth; ++i) {
    hn::Vec<Floats> w[kVectors];
    PTERYX_UNROLL for (size_t v = 0; v < kVectors; ++v) w[v] =
        hn::LoadU(d, b + i * b_row + v * kLanes);
    PTERYX_UNROLL for (size_t r = 0; r < kRows; ++r) {
      const auto x = hn::Set(d, a[r * a_row + i]);
      PTERYX_UNROLL for (size_t v = 0; v < kVectors; ++v) sum[r][v] =
          hn::MulAdd(x, w[v], sum[r][v]);
    }
  }
  PTERYX_UNROLL for (size_t r = 0; r < kRows; ++r) {
    PTERYX_UNROLL for (size_t v = 0; v < kVectors; ++v)
        hn::StoreU(sum[r][v], d, c + r * c_row + v * kLanes);
  }
}

// The same for any number of rows.
template <size_t kVectors>
HWY_INLINE void multiply_rows(size_t rows, const float* HWY_RESTRICT a, size_t a_row,
                              const float* HWY_RESTRICT b, size_t b_row, size_t depth,
                              float* HWY_RESTRICT c, size_t c_row) {
  for (; rows >= kTileRows; rows -= kTileRows, a += kTileRows * a_row, c += kTileRows * c_row)
    multiply_tile<kTileRows, kVectors>(a, a_row, b, b_row, depth, c, c_row);
  if (rows == 3) multiply_tile<3, kVectors>(a, a_row, b, b_row, depth, c, c_row);
  if (rows == 2) multiply_tile<2, kVectors>(a, a_row, b, b_row, depth, c, c_row);
  if (rows == 1) multiply_tile<1, kVectors>(a, a_row, b, b_row, depth, c, c_row);
}

// 16 bytes of each of kLanes / 4 rows, as one vector. Past `bytes` they are 0.
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const uint8_t* const* rows, size_t at, size_t bytes) {
  if constexpr (hn::MaxLanes(d) > 4) {
    const hn::Half<D> half;
    const auto low = load_blocks(half, rows, at, bytes);
    const auto high = load_blocks(half, rows + hn::MaxLanes(half), at, bytes);
    return hn::Combine(d, high, low);
  } else {
    const hn::Repartition<uint8_t, D> d8;
    return hn::BitCast(
        d, at + 16 <= bytes ? hn::LoadU(d8, *rows + at) : load_part(d8, *rows + at, bytes - at));
  }
}

// to[word, column] = from[column, word] for `columns` (a multiple of kLanes) rows of 32-bit words,
// of which there are `bytes` bytes; the last word, and words up to the next four, are filled with
// 0. Rows of `from` past `from_rows` are taken to be the last one.
HWY_INLINE void transpose_words(const uint8_t* HWY_RESTRICT from, size_t from_row, size_t from_rows,
                                size_t bytes, uint32_t* HWY_RESTRICT to, size_t columns) {
  const Words d;
  const hn::Repartition<uint64_t, Words> d64;
  for (size_t column = 0; column < columns; column += kLanes) {
    const uint8_t* row[kLanes];
    for (size_t r = 0; r < kLanes; ++r)
      row[r] = from + (column + r < from_rows ? column + r : from_rows - 1) * from_row;
    for (size_t at = 0; at < bytes; at += 16) {
      hn::Vec<Words> v[4];
      PTERYX_UNROLL for (size_t r = 0; r < 4; ++r) v[r] = load_blocks(d, row + r, at, bytes);
      const auto a = hn::BitCast(d64, hn::InterleaveLower(d, v[0], v[1]));
      const auto b = hn::BitCast(d64, hn::InterleaveLower(d, v[2], v[3]));
      const auto e = hn::BitCast(d64, hn::InterleaveUpper(d, v[0], v[1]));
      const auto f = hn::BitCast(d64, hn::InterleaveUpper(d, v[2], v[3]));
      uint32_t* out = to + at / 4 * columns + column;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, a, b)), d, out);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, a, b)), d, out + columns);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, e, f)), d, out + 2 * columns);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, e, f)), d, out + 3 * columns);
    }
  }
}

// f32 of pairs of f16 as transpose_words leaves them: to[k, column], rows of `columns`.
HWY_INLINE void widen_pairs(const uint32_t* HWY_RESTRICT words, size_t depth, size_t columns,
                            float* HWY_RESTRICT to) {
  const Words d;
  const Floats df;
  const hn::Rebind<uint16_t, Floats> d16;
  for (size_t k = 0; k < depth; ++k) {
    for (size_t c = 0; c < columns; c += kLanes) {
      auto v = hn::Load(d, words + k / 2 * columns + c);
      v = k % 2 == 0 ? hn::And(v, hn::Set(d, 0xFFFFU)) : hn::ShiftRight<16>(v);
      const auto halves = hn::DemoteTo(d16, hn::BitCast(Ints(), v));
      hn::Store(widen_halves(df, halves), df, to + k * columns + c);
    }
  }
}

// e to the power of x: at most 2 units in the last place off, with denormals, 0, infinity and NaN
// where std::exp has them.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_of(D d, V x) {
  const hn::Rebind<int32_t, D> di;
  // Past these bounds the result is 0 or infinity. Comparisons keep NaN out of the way.
  const V low = hn::Set(d, -104.0F);
  const V high = hn::Set(d, 89.0F);
  const V bounded = hn::IfThenElse(hn::Gt(x, high), high, hn::IfThenElse(hn::Gt(x, low), x, low));
  const V turns = hn::Round(hn::Mul(bounded, hn::Set(d, 1.44269504F)));
  // ln 2 in two parts, the first with few enough bits for an exact product.
  V r = hn::NegMulAdd(turns, hn::Set(d, 0.693359375F), bounded);
  r = hn::NegMulAdd(turns, hn::Set(d, -2.12194440e-4F), r);
  // 1 + r + r^2 * p(r); p interpolates at the Chebyshev nodes of [-ln 2 / 2, ln 2 / 2].
  V p = hn::Set(d, 0.0013926326F);
  p = hn::MulAdd(p, r, hn::Set(d, 0.0083632926F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.041666552F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.16666576F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.5F));
  p = hn::Add(hn::MulAdd(hn::Mul(r, r), p, r), hn::Set(d, 1.0F));
  // Two factors, since 2^turns alone may be no normal number.
  const auto power = hn::ConvertTo(di, turns);
  const auto half = hn::ShiftRight<1>(power);
  const auto bias = hn::Set(di, 127);
  const V y = hn::Mul(hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)))),
                      hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(power, half), bias))));
  return hn::IfThenElse(hn::Eq(x, x), y, x);
}

}  // namespace HWY_NAMESPACE
}  // namespace pteryx::cpu
HWY_AFTER_NAMESPACE();

#endif
