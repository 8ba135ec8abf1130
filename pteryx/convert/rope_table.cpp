// Angles are made in f32, as the models saw them in training. SPDX-License-Identifier: BSD-3-Clause
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
        const float angle = static_cast<float>(p) * w;
        t.cos.push_back(std::cos(angle));
        t.sin.push_back(std::sin(angle));
      }
    }
  }
  return t;
}

}  // namespace pteryx::convert
