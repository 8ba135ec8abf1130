// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace pteryx::convert {
namespace {

constexpr size_t kLanes = 8;  // sums side by side, so that the compiler can use vectors

// To the nearest integer, ties to even, for magnitudes below 2^22: what a float cannot hold is
// rounded away.
float rounded(float v) {
  constexpr float kShift = 12582912;  // 1.5 * 2^23
  return (v + kShift) - kShift;
}
float code4(float v) { return std::min(std::max(rounded(v), -8.0F), 7.0F); }

// Of codes c = x / scale: how much of sum(x^2) they explain with the best scale, and that scale.
struct Fit {
  float explained = -1;
  float scale = 0;
};
Fit fit(std::span<const float> x, float inverse) {
  std::array<float, kLanes> xc{};
  std::array<float, kLanes> cc{};
  size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) {
      const float c = code4(x[i + j] * inverse);
      xc[j] += x[i + j] * c;
      cc[j] += c * c;
    }
  }
  for (; i < x.size(); ++i) {
    const float c = code4(x[i] * inverse);
    xc[0] += x[i] * c;
    cc[0] += c * c;
  }
  for (size_t j = 1; j < kLanes; ++j) {
    xc[0] += xc[j];
    cc[0] += cc[j];
  }
  if (cc[0] == 0) return {};
  return {xc[0] * xc[0] / cc[0], xc[0] / cc[0]};
}

// The element of the largest magnitude, with its sign.
float extreme(std::span<const float> x) {
  float best = 0;
  for (const float v : x) {
    if (std::fabs(v) > std::fabs(best)) best = v;
  }
  return best;
}

}  // namespace

float quantize_q8(std::span<const float> row, std::span<int8_t> codes) {
  const float most = std::fabs(extreme(row));
  const float scale = most / 127;
  if (!(scale > 0) || !std::isnormal(scale)) {
    std::fill(codes.begin(), codes.end(), int8_t{0});
    return 0;
  }
  const float inverse = 1 / scale;
  for (size_t i = 0; i < row.size(); ++i) {
    codes[i] = static_cast<int8_t>(std::min(std::max(rounded(row[i] * inverse), -127.0F), 127.0F));
  }
  return scale;
}

float quantize_q4(std::span<const float> group, std::span<int8_t> codes) {
  // Codes that the extreme element would get, before rounding and clamping. On both sides of zero:
  // only one of them has an eighth code.
  constexpr std::array kTries = {-8.0F, -7.5F, -8.5F, -7.0F, -7.75F, -8.25F, -9.0F,
                                 -6.5F, 7.0F,  7.25F, 7.5F,  6.75F,  8.0F};
  const float most = extreme(group);
  if (!std::isnormal(most / 8)) {
    std::fill(codes.begin(), codes.end(), int8_t{0});
    return 0;
  }
  Fit best;
  float best_inverse = 0;
  for (const float t : kTries) {
    const float inverse = t / most;
    const Fit f = fit(group, inverse);
    if (f.explained > best.explained) {
      best = f;
      best_inverse = inverse;
    }
  }
  for (size_t i = 0; i < group.size(); ++i) {
    codes[i] = static_cast<int8_t>(code4(group[i] * best_inverse));
  }
  return best.scale;
}

void Error::add(std::span<const float> row, std::span<const int8_t> codes, float scale) {
  double error = 0;
  double sum = 0;
  for (size_t i = 0; i < row.size(); ++i) {
    const float d = row[i] - static_cast<float>(codes[i]) * scale;
    error += static_cast<double>(d) * d;
    sum += static_cast<double>(row[i]) * row[i];
  }
  squared_error += error;
  squared += sum;
}

void Error::add(float value, float stored) {
  const double d = static_cast<double>(value) - stored;
  squared_error += d * d;
  squared += static_cast<double>(value) * value;
}

double Error::relative() const { return squared == 0 ? 0 : std::sqrt(squared_error / squared); }

}  // namespace pteryx::convert
