// Kernels over rows of f32.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pteryx/cpu/rows.cpp"
#include <algorithm>
#include <cmath>
#include <limits>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "pteryx/cpu/functions-inl.h"
#include "pteryx/cpu/row_loops-inl.h"
#include "pteryx/cpu/rows.h"
#include "pteryx/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pteryx::cpu {
namespace HWY_NAMESPACE {
namespace {

size_t largest_at(const float* x, size_t count) {
  const Floats d;
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  V most[2] = {hn::Set(d, kLowest), hn::Set(d, kLowest)};
  V odd[2] = {hn::Zero(d), hn::Zero(d)};  // x - x is 0 for finite numbers
  size_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    PTERYX_UNROLL for (size_t j = 0; j < 2; ++j) {
      const V v = hn::LoadU(d, x + i + j * kLanes);
      most[j] = hn::Max(most[j], v);
      odd[j] = hn::Add(odd[j], hn::Sub(v, v));
    }
  }
  float largest = hn::GetLane(hn::MaxOfLanes(d, hn::Max(most[0], most[1])));
  float poison = hn::GetLane(hn::SumOfLanes(d, hn::Add(odd[0], odd[1])));
  for (; i < count; ++i) {
    largest = std::max(largest, x[i]);
    poison += x[i] - x[i];
  }
  if (!(poison == 0)) return count;
  const V wanted = hn::Set(d, largest);
  size_t at = 0;
  while (at + kLanes <= count && hn::AllFalse(d, hn::Eq(hn::LoadU(d, x + at), wanted)))
    at += kLanes;
  while (at < count && x[at] != largest) ++at;
  return at;
}

// Of what has squares beyond f32, or below it, in double precision.
float wide_rms(const float* x, size_t width, float eps) {
  double squares = 0;
  for (size_t i = 0; i < width; ++i) squares += double{x[i]} * double{x[i]};
  return static_cast<float>(1 / std::sqrt(squares / static_cast<double>(width) + double{eps}));
}

void rms_norm_rows(const float* x, const float* weight, float eps, size_t rows, size_t width,
                   float* y) {
  const Floats d;
  for (size_t row = 0; row < rows; ++row, x += width, y += width) {
    const float squares = sum_row(x, width, [](V v) HWY_ATTR { return hn::Mul(v, v); });
    const auto scale = hn::Set(d, std::isnormal(squares)
                                      ? 1.0F / std::sqrt(squares / static_cast<float>(width) + eps)
                                      : wide_rms(x, width, eps));
    map_row(width, y, [&](size_t i, auto load) HWY_ATTR {
      return hn::Mul(hn::Mul(load(x + i), scale), load(weight + i));
    });
  }
}

struct Moments {
  float mean;
  float rest;   // what f32 has no room for in a mean far from zero
  float scale;  // 1 / sqrt(variance + eps)
};
// Of what has sums or squares beyond f32, in double precision.
Moments wide_moments(const float* x, size_t length, float eps) {
  const auto count = static_cast<double>(length);
  double mean = 0;
  for (size_t i = 0; i < length; ++i) mean += double{x[i]} / count;
  double squares = 0;
  for (size_t i = 0; i < length; ++i) squares += (double{x[i]} - mean) * (double{x[i]} - mean);
  const auto near = static_cast<float>(mean);
  const double rest = mean - double{near};
  return {near, std::isfinite(rest) ? static_cast<float>(rest) : 0.0F,
          static_cast<float>(1 / std::sqrt(squares / count + double{eps}))};
}
HWY_INLINE Moments moments_of(const float* x, size_t length, float eps) {
  const Floats d;
  const auto count = static_cast<float>(length);
  const float mean = sum_row(x, length, [](V v) HWY_ATTR { return v; }) / count;
  const V middle = hn::Set(d, mean);
  float rest = sum_row(x, length, [middle](V v) HWY_ATTR { return hn::Sub(v, middle); }) / count;
  if (!std::isfinite(rest)) rest = 0;  // an infinite mean is one
  const V small = hn::Set(d, rest);
  const float squares = sum_row(x, length, [middle, small](V v) HWY_ATTR {
    const V c = hn::Sub(hn::Sub(v, middle), small);
    return hn::Mul(c, c);
  });
  if (!std::isfinite(squares)) return wide_moments(x, length, eps);
  return {mean, rest, 1.0F / std::sqrt(squares / count + eps)};
}

void layer_norm_rows(const float* x, const float* weight, const float* bias, float eps, size_t rows,
                     size_t width, float* y, float* stats) {
  const Floats d;
  for (size_t row = 0; row < rows; ++row, x += width, y += width) {
    const Moments m = moments_of(x, width, eps);
    const V mean = hn::Set(d, m.mean);
    const V rest = hn::Set(d, m.rest);
    const V scale = hn::Set(d, m.scale);
    map_row(width, y, [&](size_t i, auto load) HWY_ATTR {
      V v = hn::Mul(hn::Sub(hn::Sub(load(x + i), mean), rest), scale);
      if (weight != nullptr) v = hn::Mul(v, load(weight + i));
      return bias != nullptr ? hn::Add(v, load(bias + i)) : v;
    });
    if (stats == nullptr) continue;
    stats[row * 2] = m.mean + m.rest;
    stats[row * 2 + 1] = m.scale;
  }
}

void group_norm_row(const GroupNorm& g, const float* x, float* y, float* stats) {
  const Floats d;
  const Moments m = moments_of(x, g.channels * g.inner, g.eps);
  const V mean = hn::Set(d, m.mean);
  const V rest = hn::Set(d, m.rest);
  for (size_t c = 0; c < g.channels; ++c, x += g.inner, y += g.inner) {
    const V scale = hn::Set(d, g.weight != nullptr ? m.scale * g.weight[c] : m.scale);
    const V bias = hn::Set(d, g.bias != nullptr ? g.bias[c] : 0.0F);
    map_row(g.inner, y, [&](size_t i, auto load) HWY_ATTR {
      const V v = hn::MulAdd(hn::Sub(hn::Sub(load(x + i), mean), rest), scale, bias);
      return g.silu ? silu_of(v) : v;
    });
  }
  stats[0] = m.mean + m.rest;
  stats[1] = m.scale;
}

float sum_all(const float* x, size_t count) {
  return sum_row(x, count, [](V v) HWY_ATTR { return v; });
}

void round_row(const float* x, size_t count, float scale, float zero, float* y) {
  const Floats d;
  const V inverse = hn::Set(d, 1.0F / scale);
  map_row(count, y, [&](size_t i, auto load) HWY_ATTR {
    const V code = hn::Add(hn::Round(hn::Mul(load(x + i), inverse)), hn::Set(d, zero));
    const V kept = at_most(at_least(code, hn::Set(d, -128.0F)), hn::Set(d, 127.0F));
    return hn::Mul(hn::Sub(kept, hn::Set(d, zero)), hn::Set(d, scale));
  });
}

void silu_times_all(const float* gate, const float* up, size_t count, float* y) {
  const Floats d;
  const V one = hn::Set(d, 1.0F);
  map_row(count, y, [&](size_t i, auto load) HWY_ATTR {
    const V g = load(gate + i);
    return hn::Mul(hn::Div(g, hn::Add(one, exp_of(d, hn::Neg(g)))), load(up + i));
  });
}

void exp_row(const float* x, size_t count, float* y) {
  const Floats d;
  map_row(count, y, [&](size_t i, auto load) HWY_ATTR { return exp_of(d, load(x + i)); });
}

void rotate_halves(const float* x, const float* cos, const float* sin, size_t heads, size_t size,
                   float* y) {
  const Floats d;
  const size_t half = size / 2;
  for (size_t head = 0; head < heads; ++head, x += size, y += size) {
    size_t i = 0;
    for (; i + kLanes <= half; i += kLanes) {
      const V a = hn::LoadU(d, x + i);
      const V b = hn::LoadU(d, x + half + i);
      const V turned = hn::NegMulAdd(b, hn::LoadU(d, sin + i), hn::Mul(a, hn::LoadU(d, cos + i)));
      hn::StoreU(
          hn::MulAdd(a, hn::LoadU(d, sin + half + i), hn::Mul(b, hn::LoadU(d, cos + half + i))), d,
          y + half + i);
      hn::StoreU(turned, d, y + i);
    }
    for (; i < half; ++i) {
      const float a = x[i];
      const float b = x[half + i];
      y[i] = a * cos[i] - b * sin[i];
      y[half + i] = b * cos[half + i] + a * sin[half + i];
    }
  }
}

void rotate_neighbours(const float* x, const float* cos, const float* sin, size_t heads,
                       size_t size, float* y) {
  const Floats d;
  const size_t half = size / 2;
  for (size_t head = 0; head < heads; ++head, x += size, y += size) {
    size_t i = 0;
    for (; i + kLanes <= half; i += kLanes) {
      V a;
      V b;
      hn::LoadInterleaved2(d, x + 2 * i, a, b);
      const V c = hn::LoadU(d, cos + i);
      const V s = hn::LoadU(d, sin + i);
      hn::StoreInterleaved2(hn::NegMulAdd(b, s, hn::Mul(a, c)), hn::MulAdd(a, s, hn::Mul(b, c)), d,
                            y + 2 * i);
    }
    for (; i < half; ++i) {
      const float a = x[2 * i];
      const float b = x[2 * i + 1];
      y[2 * i] = a * cos[i] - b * sin[i];
      y[2 * i + 1] = b * cos[i] + a * sin[i];
    }
  }
}

void halve_row(const float* x, size_t count, uint16_t* y) {
  const Floats d;
  const hn::Rebind<uint16_t, Floats> du16;
  for (size_t i = 0; i < count; i += kLanes) {
    const size_t rest = std::min(kLanes, count - i);
    const V v = rest == kLanes ? hn::LoadU(d, x + i) : load_part(d, x + i, rest);
    HWY_ALIGN uint16_t lanes[kLanes];
    hn::Store(halve(d, v), du16, lanes);
    std::memcpy(y + i, lanes, rest * sizeof(lanes[0]));
  }
}

void widen_row(const uint16_t* x, size_t count, float* y) {
  const Floats d;
  const auto* from = reinterpret_cast<const hwy::float16_t*>(x);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) hn::StoreU(load_floats(d, from + i), d, y + i);
  if (i < count) store_part(load_floats_part(d, from + i, count - i), d, y + i, count - i);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pteryx::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pteryx::cpu {
HWY_EXPORT(rms_norm_rows);
HWY_EXPORT(layer_norm_rows);
HWY_EXPORT(group_norm_row);
HWY_EXPORT(sum_all);
HWY_EXPORT(largest_at);
HWY_EXPORT(round_row);
HWY_EXPORT(silu_times_all);
HWY_EXPORT(exp_row);
HWY_EXPORT(halve_row);
HWY_EXPORT(widen_row);
HWY_EXPORT(rotate_halves);
HWY_EXPORT(rotate_neighbours);

void rms_norm(const float* x, const float* weight, float eps, size_t rows, size_t width, float* y) {
  HWY_DYNAMIC_DISPATCH(rms_norm_rows)(x, weight, eps, rows, width, y);
}
void layer_norm(const float* x, const float* weight, const float* bias, float eps, size_t rows,
                size_t width, float* y, float* stats) {
  HWY_DYNAMIC_DISPATCH(layer_norm_rows)(x, weight, bias, eps, rows, width, y, stats);
}
void group_norm(const GroupNorm& g, const float* x, float* y, float* stats) {
  HWY_DYNAMIC_DISPATCH(group_norm_row)(g, x, y, stats);
}
float mean_of(const float* x, size_t count, float by) {
  const float sum = HWY_DYNAMIC_DISPATCH(sum_all)(x, count);
  if (std::isfinite(sum)) return sum / by;
  double wide = 0;
  for (size_t i = 0; i < count; ++i) wide += double{x[i]};
  return static_cast<float>(wide / double{by});
}
size_t find_largest(const float* x, size_t count) {
  return HWY_DYNAMIC_DISPATCH(largest_at)(x, count);
}
void round_to_codes(const float* x, size_t count, float scale, float zero, float* y) {
  HWY_DYNAMIC_DISPATCH(round_row)(x, count, scale, zero, y);
}
void silu_times(const float* gate, const float* up, size_t count, float* y) {
  HWY_DYNAMIC_DISPATCH(silu_times_all)(gate, up, count, y);
}
void exp_all(const float* x, size_t count, float* y) { HWY_DYNAMIC_DISPATCH(exp_row)(x, count, y); }
void to_f16(const float* x, size_t count, uint16_t* y) {
  HWY_DYNAMIC_DISPATCH(halve_row)(x, count, y);
}
void from_f16(const uint16_t* x, size_t count, float* y) {
  HWY_DYNAMIC_DISPATCH(widen_row)(x, count, y);
}
void rotate(const float* x, const float* cos, const float* sin, Pairs pairs, size_t heads,
            size_t size, float* y) {
  if (pairs == Pairs::kHalves) {
    HWY_DYNAMIC_DISPATCH(rotate_halves)(x, cos, sin, heads, size, y);
  } else {
    HWY_DYNAMIC_DISPATCH(rotate_neighbours)(x, cos, sin, heads, size, y);
  }
}
}  // namespace pteryx::cpu
#endif
