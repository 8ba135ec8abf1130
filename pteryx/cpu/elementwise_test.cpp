// Elementwise functions against plain loops. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/elementwise.h"

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/cpu/testing/each_target.h"
#include "pteryx/cpu/testing/plain.h"

namespace pteryx::cpu {
namespace {
using testing::for_each_target;
using testing::is_near;
using testing::normal_floats;
using testing::same_bits;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr size_t kMostCount = 33;  // two vectors of 16 lanes, and one element

// Among them what is no usual number, in other places for another seed. No byte lies behind them.
std::vector<float> some_floats(size_t count, uint32_t seed) {
  constexpr float kOdd[] = {0.0F, -0.0F, kInf, -kInf, kNan, 1.0F, -1.0F, 80.0F, -80.0F};
  std::vector<float> values = normal_floats(count, seed, 3);
  for (size_t i = seed % 4; i < count; i += 4) values[i] = kOdd[(i / 4 + seed) % std::size(kOdd)];
  return values;
}

void expect_near(const std::vector<float>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_TRUE(is_near(got[i], want[i], 2e-6 * (std::fabs(want[i]) + 1)))
        << "at " << i << " of " << want.size() << ": want " << want[i] << ", got " << got[i];
  }
}

double bounded(double x, double low, double high) { return x < low ? low : x > high ? high : x; }
double silu(double x) { return x / (1 + std::exp(-x)); }
double hardsigmoid(double x) { return bounded(x + 3, 0, 6) / 6; }
double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(0.797884560802865 * (x + 0.044715 * x * x * x)));
}

constexpr float kA = -0.5F;
constexpr float kB = 1.25F;

struct UnaryCase {
  Unary f;
  const char* name;
  std::function<double(double)> plain;
};
std::vector<UnaryCase> unary_cases() {
  return {{Unary::kNeg, "neg", [](double x) { return -x; }},
          {Unary::kAbs, "abs", [](double x) { return std::fabs(x); }},
          {Unary::kSqrt, "sqrt", [](double x) { return std::sqrt(x); }},
          {Unary::kRsqrt, "rsqrt", [](double x) { return 1 / std::sqrt(x); }},
          {Unary::kReciprocal, "reciprocal", [](double x) { return 1 / x; }},
          {Unary::kExp, "exp", [](double x) { return std::exp(x); }},
          {Unary::kErf, "erf", [](double x) { return std::erf(x); }},
          {Unary::kTanh, "tanh", [](double x) { return std::tanh(x); }},
          {Unary::kSigmoid, "sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
          {Unary::kSilu, "silu", silu},
          {Unary::kHardsigmoid, "hardsigmoid", hardsigmoid},
          {Unary::kHardswish, "hardswish", [](double x) { return x * hardsigmoid(x); }},
          {Unary::kGelu, "gelu", gelu},
          {Unary::kGeluTanh, "gelu_tanh", gelu_tanh},
          {Unary::kClamp, "clamp", [](double x) { return bounded(x, kA, kB); }},
          {Unary::kLeakyRelu, "leaky_relu", [](double x) { return x < 0 ? x * kA : x; }}};
}

TEST(Elementwise, UnaryMatchesPlainLoops) {
  for (const UnaryCase& c : unary_cases()) {
    SCOPED_TRACE(c.name);
    for (size_t count = 0; count <= kMostCount; ++count) {
      const std::vector<float> x = some_floats(count, static_cast<uint32_t>(count));
      std::vector<double> want(count);
      for (size_t i = 0; i < count; ++i) want[i] = c.plain(double{x[i]});
      for_each_target([&] {
        std::vector<float> y(count);
        apply(c.f, kA, kB, x.data(), count, y.data());
        expect_near(y, want);
        std::vector<float> in_place = x;
        apply(c.f, kA, kB, in_place.data(), count, in_place.data());
        EXPECT_TRUE(same_bits(in_place, y)) << count;
      });
    }
  }
}

// exp(-x) of these is beyond f32, and what is made of it is not.
TEST(Elementwise, FarBelowZeroSigmoidIsSmallAndNotZero) {
  const std::vector<float> x = {-88.0F, -88.8F, -90.0F, -95.0F, -100.0F, -87.0F, -104.0F, -300.0F};
  for_each_target([&] {
    std::vector<float> sigmoid(x.size());
    std::vector<float> silus(x.size());
    apply(Unary::kSigmoid, 0, 0, x.data(), x.size(), sigmoid.data());
    apply(Unary::kSilu, 0, 0, x.data(), x.size(), silus.data());
    constexpr double kUnit = std::numeric_limits<float>::denorm_min();
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = 1 / (1 + std::exp(-double{x[i]}));
      EXPECT_NEAR(sigmoid[i], want, 1e-6 * want + kUnit) << x[i];
      EXPECT_NEAR(silus[i], want * double{x[i]}, std::fabs(x[i]) * (1e-6 * want + kUnit)) << x[i];
    }
  });
}

constexpr float kAlpha = 0.75F;

struct BinaryCase {
  Binary f;
  const char* name;
  std::function<double(double, double)> plain;
};
std::vector<BinaryCase> binary_cases() {
  return {{Binary::kAdd, "add", [](double a, double b) { return a + kAlpha * b; }},
          {Binary::kSub, "sub", [](double a, double b) { return a - kAlpha * b; }},
          {Binary::kMul, "mul", [](double a, double b) { return a * b; }},
          {Binary::kDiv, "div", [](double a, double b) { return a / b; }},
          {Binary::kMin, "min", [](double a, double b) { return a < b || std::isnan(a) ? a : b; }},
          {Binary::kMax, "max", [](double a, double b) { return a > b || std::isnan(a) ? a : b; }},
          {Binary::kSiluMul, "silu_mul", [](double a, double b) { return silu(a) * b; }}};
}

void check(const BinaryCase& c, size_t count, size_t a_step, size_t b_step) {
  const auto seed = static_cast<uint32_t>(count);
  const std::vector<float> a = some_floats(a_step == 0 ? 1 : count, seed);
  const std::vector<float> b = some_floats(b_step == 0 ? 1 : count, seed + 1);
  std::vector<double> want(count);
  for (size_t i = 0; i < count; ++i)
    want[i] = c.plain(double{a[i * a_step]}, double{b[i * b_step]});
  const Binaries f{.f = c.f, .alpha = kAlpha, .a_step = a_step, .b_step = b_step};
  for_each_target([&] {
    std::vector<float> y(count);
    apply(f, a.data(), b.data(), count, y.data());
    expect_near(y, want);
    std::vector<float> over_a = a;
    if (a_step == 1) apply(f, over_a.data(), b.data(), count, over_a.data());
    EXPECT_TRUE(a_step == 0 || same_bits(over_a, y)) << count;
    std::vector<float> over_b = b;
    if (b_step == 1) apply(f, a.data(), over_b.data(), count, over_b.data());
    EXPECT_TRUE(b_step == 0 || same_bits(over_b, y)) << count;
  });
}

TEST(Elementwise, BinaryMatchesPlainLoops) {
  for (const BinaryCase& c : binary_cases()) {
    SCOPED_TRACE(c.name);
    for (size_t count = 0; count <= kMostCount; ++count) {
      for (const size_t a_step : {0UL, 1UL}) {
        for (const size_t b_step : {0UL, 1UL}) check(c, count, a_step, b_step);
      }
    }
  }
}

}  // namespace
}  // namespace pteryx::cpu
