// Products with one to four rows of x: every weight is read once, unpacked in registers, and the
// sums of four rows of weight are brought together at the end of each vector.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pteryx/cpu/product_few.cpp"
#include <algorithm>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "pteryx/cpu/few_codes-inl.h"
#include "pteryx/cpu/product_parts.h"
#include "pteryx/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pteryx::cpu {
namespace HWY_NAMESPACE {
namespace {

// Four rows of weight with kM rows of x: result r of m at sums[m * 4 + r].
template <class Codes, size_t kM>
HWY_INLINE void multiply_quad(const Rows<kM>& rows, size_t units, size_t bytes, float* sums) {
  const Words d;
  const FourWords d4;
  const Floats df;
  const FourFloats df4;
  hn::Vec<Floats> total[kM];
  hn::Vec<FourFloats> rest[kM];
  PTERYX_UNROLL for (size_t m = 0; m < kM; ++m) total[m] = hn::Zero(df);
  size_t unit = 0;
  for (; unit + kVectorUnits <= units && (unit + kVectorUnits) * 16 <= bytes;
       unit += kVectorUnits) {
    if constexpr (requires { Codes::kOffset; }) {
      add_rounded<Codes, kM>(d, rows, unit, kLanes * 4, total);
    } else {
      add_floats<Codes, kM>(d, rows, unit, kLanes * 4, total);
    }
  }
  if (unit + kVectorUnits <= units) {  // a last vector that the row does not fill
    if constexpr (requires { Codes::kOffset; }) {
      add_rounded<Codes, kM>(d, rows, unit, bytes - unit * 16, total);
    } else {
      add_floats<Codes, kM>(d, rows, unit, bytes - unit * 16, total);
    }
    unit += kVectorUnits;
  }
  PTERYX_UNROLL for (size_t m = 0; m < kM; ++m) rest[m] = add_blocks(df, total[m]);
  for (; unit < units; ++unit) {
    if constexpr (requires { Codes::kOffset; }) {
      add_rounded<Codes, kM>(d4, rows, unit, bytes - unit * 16, rest);
    } else {
      add_floats<Codes, kM>(d4, rows, unit, bytes - unit * 16, rest);
    }
  }
  PTERYX_UNROLL for (size_t m = 0; m < kM; ++m) hn::Store(rest[m], df4, sums + m * 4);
}

// Rows of weight whose scales are gathered at once. Groups of long rows have their scales in many
// pages, of which more is then read at a time.
size_t chunk_rows(const Weight& weight) { return weight.k >= 1024 ? 64 : 16; }

// The scales of a chunk of rows, four rows together: [count / 4, units, 4].
HWY_INLINE void gather_scales(const Weight& weight, size_t n, size_t count, float factor,
                              size_t units, float* to) {
  const size_t chunk = chunk_rows(weight);
  const FourFloats d;
  const auto times = hn::Set(d, factor);
  for (size_t unit = 0; unit < units; ++unit) {
    const float* from = weight.scales + unit * kBlock / weight.group * weight.scale_row + n;
    for (size_t r = 0; r < chunk; r += 16) hwy::Prefetch(from + chunk + r);
    for (size_t r = 0; r < count; r += 4) {
      const auto v = count - r >= 4 ? hn::LoadU(d, from + r) : load_part(d, from + r, count - r);
      hn::Store(hn::Mul(v, times), d, to + (r * units + unit * 4));
    }
  }
}

// Of all sums with a prepared row of x.
HWY_INLINE float row_scale(const uint8_t* x, const RowLayout& layout, Precision precision) {
  const void* scale = x + layout.scales;
  return precision == Precision::kF16 ? 1.0F : *static_cast<const float*>(scale);
}

template <class Codes, size_t kM>
void multiply_codes(const Product& p, Precision precision) {
  const Weight& w = p.weight;
  const size_t units = units_of(w);
  const size_t bytes = is_nibbles(w.kind) ? (w.k + 1) / 2 : w.k;
  const bool grouped = is_nibbles(w.kind);
  const size_t chunk = chunk_rows(w);
  auto* scales = static_cast<float*>(p.scratch);
  Rows<kM> rows{};
  rows.layout = layout_of(w, precision);
  rows.ahead = std::max<size_t>(4 * w.row_bytes, 4096);
  for (size_t m = 0; m < kM; ++m)
    rows.x[m] = static_cast<const uint8_t*>(p.prepared) + m * rows.layout.bytes;
  float factor = 1;
  if constexpr (requires { Codes::kFactor; }) factor = Codes::kFactor;
  for (size_t n = p.n_begin; n < p.n_end; n += chunk) {
    const size_t count = std::min(chunk, p.n_end - n);
    if (grouped) gather_scales(w, n, count, factor, units, scales);
    for (size_t r = 0; r < count; r += 4) {
      const size_t own = std::min<size_t>(4, count - r);
      for (size_t i = 0; i < 4; ++i) {
        rows.weight[i] =
            static_cast<const uint8_t*>(w.data) + (n + r + std::min(i, own - 1)) * w.row_bytes;
      }
      rows.scales = grouped ? scales + r * units : nullptr;
      HWY_ALIGN float sums[kM * 4];
      multiply_quad<Codes, kM>(rows, units, bytes, sums);
      for (size_t m = 0; m < kM; ++m) {
        const float up = row_scale(rows.x[m], rows.layout, precision);
        for (size_t i = 0; i < own; ++i) {
          const float scale = grouped ? 1.0F : w.scales[n + r + i];
          p.y[m * p.y_row + n + r + i] = sums[m * 4 + i] * scale * up;
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
      return rounded ? multiply_codes<NibblePairs, kM>(p, precision)
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
constexpr size_t kMostChunk = 64;
size_t few_rows_scratch(const Weight& weight) {
  return is_nibbles(weight.kind) ? kMostChunk * blocks_of(weight.k) * sizeof(float) : 0;
}
void prepare_few(const Weight& weight, Precision precision, const float* x, void* prepared_row) {
  HWY_DYNAMIC_DISPATCH(prepare_row)(weight, precision, x, prepared_row);
}
void multiply_few(const Product& p, Precision precision) {
  HWY_DYNAMIC_DISPATCH(multiply_rows_few)(p, precision);
}
}  // namespace pteryx::cpu
#endif
