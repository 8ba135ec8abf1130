// Angles are made in f32, as the models saw them in training. Sines and cosines are the same bits
// everywhere: those of C libraries are not.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/rope_table.h"

#include <cmath>
#include <numbers>

namespace pteryx::convert {
namespace {

double scaled(double frequency, const RopeScaling& s) {
  if (s.kind == RopeScaling::Kind::kNone) return frequency;
  if (s.kind == RopeScaling::Kind::kLinear) return frequency / s.factor;
  // Fast turns stay, slow ones slow down, those between are blended.
  const double wavelength = 2 * std::numbers::pi / frequency;
  const double turns = s.original_context / wavelength;
  if (turns > s.high_freq) return frequency;
  if (turns < s.low_freq) return frequency / s.factor;
  const double keep = (turns - s.low_freq) / (s.high_freq - s.low_freq);
  return (1 - keep) * frequency / s.factor + keep * frequency;
}

std::vector<float> frequencies(const ModelShape& shape) {
  const int64_t n = shape.head_size / 2;
  std::vector<float> out;
  for (int64_t i = 0; i < n; ++i) {
    const double exponent = -2 * static_cast<double>(i) / static_cast<double>(shape.head_size);
    double f = scaled(std::pow(shape.rope_theta, exponent), shape.rope_scaling);
    if (!shape.rope_factors.empty()) f /= shape.rope_factors[static_cast<size_t>(i)];
    out.push_back(static_cast<float>(f));
  }
  return out;
}

struct Turn {
  float cos, sin;
};

constexpr double kLargestReduced = 1 << 20;  // of angles; models have none beyond it

// The rest of a quarter turn, then a series whose error is below that of a double.
Turn turn(double angle) {
  if (!(angle < kLargestReduced)) {
    return {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))};
  }
  // Pi / 2 in two parts; the first has zeros enough that its multiples are exact.
  constexpr double kQuarterHigh = 0x1.921fb544p+0;
  constexpr double kQuarterLow = 0x1.0b4611a626331p-34;
  const auto quarters = static_cast<int64_t>(std::floor(angle / (std::numbers::pi / 2) + 0.5));
  const auto n = static_cast<double>(quarters);
  const double x = (angle - n * kQuarterHigh) - n * kQuarterLow;
  const double xx = x * x;
  constexpr int kTerms = 9;
  double cos = 1;
  double sin = 1;
  for (int i = kTerms; i >= 1; --i) {
    cos = 1 - cos * xx / static_cast<double>((2 * i - 1) * (2 * i));
    sin = 1 - sin * xx / static_cast<double>(2 * i * (2 * i + 1));
  }
  sin *= x;
  switch (quarters % 4) {
    case 0: return {static_cast<float>(cos), static_cast<float>(sin)};
    case 1: return {static_cast<float>(-sin), static_cast<float>(cos)};
    case 2: return {static_cast<float>(-cos), static_cast<float>(-sin)};
    default: return {static_cast<float>(sin), static_cast<float>(-cos)};
  }
}

}  // namespace

RopeTable rope_table(const ModelShape& shape, int64_t rows) {
  const std::vector<float> f = frequencies(shape);
  const int repeats = shape.rope == RopeLayout::kHalves ? 2 : 1;
  RopeTable t;
  t.width = static_cast<int64_t>(f.size()) * repeats;
  t.cos.reserve(static_cast<size_t>(rows * t.width));
  t.sin.reserve(static_cast<size_t>(rows * t.width));
  for (int64_t p = 0; p < rows; ++p) {
    for (int r = 0; r < repeats; ++r) {
      for (const float w : f) {
        const auto [cos, sin] = turn(static_cast<float>(p) * w);
        t.cos.push_back(cos);
        t.sin.push_back(sin);
      }
    }
  }
  return t;
}

}  // namespace pteryx::convert
