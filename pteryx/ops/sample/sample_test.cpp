// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/sample/sample.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

struct Draw {
  TestTensor logits;
  Sampling settings;
  std::vector<int64_t> history = std::vector<int64_t>(64);  // before this call
  std::vector<int64_t> tokens = {1};
  int64_t start = 0;
};

Case make_case(const Draw& d) {
  const auto words = words_of(d.settings);
  const auto ints = [](DType t, const Dims& dims, const auto& values) {
    return make(t, dims, [&](int64_t i) { return double(values[static_cast<size_t>(i)]); });
  };
  return std::move(Case(kSampleOp)
                       .in(d.logits)
                       .in(ints(DType::kI32, {int64_t{words.size()}}, words))
                       .in(ints(DType::kI32, {static_cast<int64_t>(d.history.size())}, d.history))
                       .in(ints(DType::kI64, {1, static_cast<int64_t>(d.tokens.size())}, d.tokens))
                       .live(d.start)
                       .none()
                       .none()
                       .none()
                       .none()
                       .none()
                       .out(DType::kI32, {1, 1}));
}

int64_t draw(const Draw& d, Where where = Where::kGpu) {
  const auto result = run(make_case(d), where);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? static_cast<int64_t>(result->front().data[0]) : -1;
}

TestTensor logits(int64_t n, uint32_t seed) { return random(DType::kF32, {1, n}, seed, -4, 4); }

TEST(Sample, TemperatureZeroTakesTheFirstHighest) {
  for (const int64_t n : {1, 5, 1023, 1024, 1025, 5000}) {
    TestTensor x = logits(n, 3);
    const auto highest = static_cast<size_t>(n * 2 / 3);
    x.data[highest] = 9;
    EXPECT_EQ(draw({.logits = x, .settings = {}}), static_cast<int64_t>(highest));
    x.data.back() = 9;
    EXPECT_EQ(draw({.logits = x, .settings = {}}), static_cast<int64_t>(highest));
  }
}

TEST(Sample, DrawsFromTheLastRow) {
  TestTensor x = random(DType::kF32, {1, 3, 700}, 4, -4, 4);
  x.data[5] = 50;
  x.data[2 * 700 + 123] = 20;
  EXPECT_EQ(draw({.logits = x, .settings = {}}), 123);
}

// Everything that shapes the draw, against the CPU's definition.
TEST(Sample, EverySettingFollowsTheDefinition) {
  const Sampling settings[] = {
      {.temperature = 1},
      {.temperature = 0.7F, .top_k = 40},
      {.temperature = 1.3F, .top_p = 0.9F},
      {.temperature = 1, .min_p = 0.2F},
      {.temperature = 0.8F, .top_p = 0.95F, .min_p = 0.02F, .top_k = 100},
      {.temperature = 1, .top_k = 1},
      {.temperature = 1, .top_p = 0},
      {.temperature = 0, .repetition = 3},
      {.temperature = 0, .presence = 2, .frequency = 1},
      {.temperature = 0, .repetition = 3, .window = 4},
      {.temperature = 1, .repetition = 1.2F, .presence = 0.5F, .frequency = 0.25F, .top_k = 50},
      {.temperature = 2, .vocabulary = 300},
  };
  for (const int64_t n : {301, 2500}) {
    for (Sampling s : settings) {
      for (uint64_t seed = 0; seed < 6; ++seed) {
        s.seed = seed * 0x9E3779B97F4A7C15U;
        Draw d{.logits = logits(n, static_cast<uint32_t>(seed) + 7), .settings = s};
        for (size_t i = 0; i < d.history.size(); ++i)
          d.history[i] = static_cast<int64_t>(i * 7) % n;
        d.start = 20;
        d.tokens = {d.history[20], d.history[21], d.history[22]};
        EXPECT_EQ(draw(d, Where::kGpu), draw(d, Where::kCpu)) << "n " << n << " seed " << seed;
      }
    }
  }
}

TEST(Sample, DrawsTheSameWithoutSubgroups) {
  const auto without = [](gpu::Caps& caps) { caps.subgroups = false; };
  for (const float temperature : {0.0F, 0.8F}) {
    const Draw d{.logits = logits(2500, 5), .settings = {.temperature = temperature, .top_k = 9}};
    const TestTensor want =
        make(DType::kI32, {1, 1}, [&](int64_t) { return double(draw(d, Where::kCpu)); });
    expect_route(make_case(d), "", {want}, {0, 0}, without);
  }
}

TEST(Sample, TokensOfTheCallEnterTheHistory) {
  const TestTensor tokens = make(DType::kI64, {1, 3}, [](int64_t i) { return double(7 + i); });
  const TestTensor before = make(DType::kI32, {64}, [](int64_t i) { return double(-i); });
  TestTensor after = before;
  for (size_t i = 0; i < 3; ++i) after.data[5 + i] = tokens.data[i];
  const auto remember = [&](int64_t start) {
    return std::move(Case(kRememberOp).in(tokens).in(before).live(start).out(DType::kF32, {1}));
  };
  for (const Where where : {Where::kGpu, Where::kCpu}) {
    const auto result = run(remember(5), where);
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(result->back().data, after.data);
  }
  expect_error(remember(62), "start_pos 62 + 3 tokens exceed the 64 positions of history");
}

// Drawn often enough, ids come as often as the softmax says.
TEST(Sample, FrequenciesFollowTheProbabilities) {
  Draw d{.logits = make(DType::kF32, {1, 4}, [](int64_t i) { return std::log(double(i + 1)); }),
         .settings = {.temperature = 1}};
  d.history.assign(4096, 0);
  std::map<int64_t, int> times;
  constexpr int kDraws = 4000;
  for (int i = 0; i < kDraws; ++i) {
    d.start = i;
    ++times[draw(d, Where::kCpu)];
  }
  for (int64_t id = 0; id < 4; ++id)
    EXPECT_NEAR(times[id], kDraws * double(id + 1) / 10, 4 * std::sqrt(kDraws * 0.25)) << id;
}

TEST(Sample, NothingIsDrawnOutsideTheVocabulary) {
  TestTensor x = logits(40, 2);
  x.data[35] = 100;
  EXPECT_LT(draw({.logits = x, .settings = {.vocabulary = 32}}), 32);
}

// NaN and +inf, anywhere, and nothing but -inf; whatever is drawn how.
TEST(Sample, NothingIsDrawnFromLogitsThatAreNotFinite) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Sampling settings[] = {{},
                               {.temperature = 0.8F},
                               {.temperature = 1, .top_p = 0.9F, .top_k = 40},
                               {.temperature = 1, .min_p = 0.1F},
                               {.repetition = 1.3F, .presence = 0.5F, .vocabulary = 290}};
  for (const DType type : {DType::kF32, DType::kF16}) {
    for (const int64_t n : {300, 5000}) {
      for (const Sampling& s : settings) {
        for (const Where where : {Where::kGpu, Where::kCpu}) {
          const auto of = [&](const TestTensor& x) {
            return draw({.logits = x, .settings = s}, where);
          };
          const TestTensor x = random(type, {1, n}, 3, -4, 4);
          EXPECT_GE(of(x), 0);
          for (const double bad : {nan, -nan, inf}) {
            for (const int64_t at : {int64_t{0}, n / 2, n - 1}) {
              TestTensor y = x;
              y.data[static_cast<size_t>(at)] = bad;
              EXPECT_EQ(of(y), kNoToken) << bad << " at " << at << " of " << n;
            }
          }
          TestTensor masked = x;
          std::fill(masked.data.begin(), masked.data.end(), -inf);
          EXPECT_EQ(of(masked), kNoToken);
          masked.data[7] = -2;
          EXPECT_EQ(of(masked), 7);
        }
      }
    }
  }
}

TEST(Sample, RefusesAPositionBehindTheHistory) {
  Draw d{.logits = logits(50, 1), .settings = {}};
  d.start = 64;
  expect_error(make_case(d), "start_pos 64 + 1 tokens exceed the 64 positions of history");
}

}  // namespace
}  // namespace pteryx::ops::testing
