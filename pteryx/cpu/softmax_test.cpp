// Softmax against plain loops. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/softmax.h"

#include <algorithm>
#include <cmath>
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
constexpr SoftmaxKind kKinds[] = {SoftmaxKind::kPlain, SoftmaxKind::kLog};

// [rows, width] as [width, rows], or back.
std::vector<float> turned(const std::vector<float>& x, size_t width) {
  const size_t rows = x.size() / width;
  std::vector<float> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i % width * rows + i / width] = x[i];
  return y;
}

std::vector<double> plain(SoftmaxKind kind, const std::vector<float>& x, size_t width) {
  std::vector<double> y(x.size());
  for (size_t first = 0; first < x.size(); first += width) {
    double most = -INFINITY;
    double sum = 0;
    for (size_t i = first; i < first + width; ++i) most = std::max(most, double{x[i]});
    for (size_t i = first; i < first + width; ++i) sum += std::exp(double{x[i]} - most);
    for (size_t i = first; i < first + width; ++i) {
      const double d = double{x[i]} - most;
      y[i] = kind == SoftmaxKind::kLog ? d - std::log(sum) : std::exp(d) / sum;
    }
  }
  return y;
}

void expect_near(const std::vector<float>& got, const std::vector<double>& want) {
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_TRUE(is_near(got[i], want[i], 2e-6 * (std::fabs(want[i]) + 1)))
        << "at " << i << " of " << want.size() << ": want " << want[i] << ", got " << got[i];
  }
}

// As rows, and as columns in one range and in two.
void check(const std::vector<float>& x, size_t width) {
  const size_t rows = x.size() / width;
  const std::vector<float> columns = turned(x, width);
  for (const SoftmaxKind kind : kKinds) {
    const std::vector<double> want = plain(kind, x, width);
    for_each_target([&] {
      std::vector<float> y(x.size());
      softmax(kind, x.data(), rows, width, y.data());
      expect_near(y, want);
      softmax_columns(kind, {width, rows, 0, rows}, columns.data(), y.data());
      expect_near(turned(y, rows), want);
      std::vector<float> cut(x.size());
      for (const auto& [begin, end] : {std::pair{rows / 3, rows}, {size_t{0}, rows / 3}})
        softmax_columns(kind, {width, rows, begin, end}, columns.data(), cut.data());
      EXPECT_TRUE(same_bits(y, cut)) << "width " << width;
    });
  }
}

TEST(Softmax, MatchesPlainLoops) {
  for (const size_t width : {1UL, 3UL, 16UL, 64UL, 100UL, 576UL, 2051UL}) {
    for (const size_t rows : {1UL, 3UL, 37UL}) {
      std::vector<float> x = normal_floats(rows * width, 1, 3);
      check(x, width);
      // An infinity less itself is NaN, and all of the row with it; as with a NaN anywhere.
      x[x.size() / 2] = kInf;
      x[x.size() - 1] = kNan;
      check(x, width);
    }
  }
  check({-kInf, 1, -kInf, 2, -kInf}, 5);
  check({-kInf, -kInf, -kInf}, 3);
  check({3e38F, -3e38F, 3e38F}, 3);
}

}  // namespace
}  // namespace pteryx::cpu
