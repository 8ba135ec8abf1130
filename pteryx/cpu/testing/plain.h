// What plain loops need to be compared with.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace pteryx::cpu::testing {

inline std::vector<float> normal_floats(size_t count, uint32_t seed, float scale = 1) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0.0F, scale);
  std::vector<float> values(count);
  for (float& v : values) v = normal(engine);
  return values;
}

// NaN is near NaN, an infinity near itself alone.
inline bool is_near(float got, double want, double tolerance) {
  if (std::isnan(want)) return std::isnan(got);
  const auto rounded = static_cast<float>(want);
  if (std::isinf(rounded)) return got == rounded;
  return std::fabs(static_cast<double>(got) - want) <= tolerance;
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

}  // namespace pteryx::cpu::testing
