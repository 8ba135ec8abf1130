// Kernels over rows against plain loops. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/base/dtype.h"
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
constexpr size_t kRows = 3;
constexpr size_t kWidths[] = {1, 3, 16, 64, 100, 576, 2051};

// One row by a plain loop, and all rows by a kernel.
using PlainRow = std::function<void(const float* x, size_t width, double* y)>;
using Kernel = std::function<void(const float* x, size_t rows, size_t width, float* y)>;

void expect_rows(const std::vector<float>& x, size_t width, const PlainRow& plain,
                 const Kernel& kernel, double tolerance) {
  const size_t rows = x.size() / width;
  std::vector<double> want(x.size());
  for (size_t r = 0; r < rows; ++r) plain(x.data() + r * width, width, want.data() + r * width);
  for_each_target([&] {
    std::vector<float> y(x.size());
    kernel(x.data(), rows, width, y.data());
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_TRUE(is_near(y[i], want[i], tolerance * (std::fabs(want[i]) + 1)))
          << "width " << width << " at " << i << ": want " << want[i] << ", got " << y[i];
    }
    std::vector<float> one_by_one(x.size());
    for (size_t r = rows; r-- > 0;)
      kernel(x.data() + r * width, 1, width, one_by_one.data() + r * width);
    EXPECT_TRUE(same_bits(y, one_by_one)) << "width " << width;
  });
}

// x with what is not finite in its second and third row.
std::vector<float> with_rests(std::vector<float> x, size_t width) {
  x[width + width / 2] = kInf;
  x[2 * width + width - 1] = kNan;
  return x;
}

std::vector<float> times(std::vector<float> x, float factor) {
  for (float& v : x) v *= factor;
  return x;
}

TEST(Rows, TheFirstOfTheLargestIsFound) {
  for_each_target([&] {
    EXPECT_EQ(find_largest(nullptr, 0), 0U);
    for (const size_t width : kWidths) {
      std::vector<float> x = normal_floats(width, 7);
      for (const size_t at : {size_t{0}, width / 2, width - 1}) {
        x[at] = *std::ranges::max_element(x) + (at == 0 ? 1.0F : 0.0F);  // the same from then on
        EXPECT_EQ(find_largest(x.data(), width), 0U) << width;
        std::vector<float> alone(width, std::numeric_limits<float>::lowest());
        alone[at] = -3;
        EXPECT_EQ(find_largest(alone.data(), width), at) << width;
        for (const float odd : {kInf, -kInf, kNan}) {
          alone[at] = odd;
          EXPECT_EQ(find_largest(alone.data(), width), width) << width << " " << odd;
        }
      }
    }
  });
}

TEST(Rows, RmsNormMatchesPlainLoops) {
  for (const size_t width : kWidths) {
    const std::vector<float> weight = normal_floats(width, 2);
    const auto plain = [&](const float* x, size_t n, double* y) {
      double squares = 0;
      for (size_t i = 0; i < n; ++i) squares += double{x[i]} * double{x[i]};
      const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
      for (size_t i = 0; i < n; ++i) y[i] = double{x[i]} * scale * double{weight[i]};
    };
    const auto kernel = [&](const float* x, size_t rows, size_t n, float* y) {
      rms_norm(x, weight.data(), 1e-5F, rows, n, y);
    };
    const std::vector<float> x = normal_floats(kRows * width, 1, 3);
    expect_rows(x, width, plain, kernel, 1e-6);
    expect_rows(with_rests(x, width), width, plain, kernel, 1e-6);
    expect_rows(times(x, 1e25F), width, plain, kernel, 1e-6);  // with squares beyond f32
  }
}

TEST(Rows, RmsNormOfSquaresBelowF32) {
  constexpr size_t kWidth = 100;
  const std::vector<float> weight(kWidth, 1.0F);
  const std::vector<float> x = times(normal_floats(kRows * kWidth, 1), 1e-25F);
  for_each_target([&] {
    std::vector<float> y(x.size());
    rms_norm(x.data(), weight.data(), 0, kRows, kWidth, y.data());
    for (size_t row = 0; row < kRows; ++row) {
      double squares = 0;
      for (size_t i = 0; i < kWidth; ++i) squares += std::pow(double{x[row * kWidth + i]}, 2);
      const double scale = 1 / std::sqrt(squares / kWidth);
      for (size_t i = row * kWidth; i < (row + 1) * kWidth; ++i)
        EXPECT_NEAR(y[i], double{x[i]} * scale, 1e-5) << i;
    }
  });
}

TEST(Rows, LayerNormMatchesPlainLoops) {
  for (const size_t width : kWidths) {
    const std::vector<float> weight = normal_floats(width, 2);
    const std::vector<float> bias = normal_floats(width, 3);
    for (const bool affine : {false, true}) {
      const auto plain = [&](const float* x, size_t n, double* y) {
        double mean = 0;
        double squares = 0;
        for (size_t i = 0; i < n; ++i) mean += double{x[i]} / static_cast<double>(n);
        for (size_t i = 0; i < n; ++i) squares += std::pow(double{x[i]} - mean, 2);
        const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
        for (size_t i = 0; i < n; ++i) {
          y[i] = (double{x[i]} - mean) * scale;
          if (affine) y[i] = y[i] * double{weight[i]} + double{bias[i]};
        }
      };
      const auto kernel = [&](const float* x, size_t rows, size_t n, float* y) {
        layer_norm(x, affine ? weight.data() : nullptr, affine ? bias.data() : nullptr, 1e-5F, rows,
                   n, y);
      };
      const std::vector<float> x = normal_floats(kRows * width, 1, 3);
      expect_rows(x, width, plain, kernel, 1e-5);
      expect_rows(with_rests(x, width), width, plain, kernel, 1e-5);
      if (width > 1) expect_rows(times(x, 1e25F), width, plain, kernel, 1e-5);
    }
  }
}

TEST(Rows, ValuesAreRoundedToCodes) {
  for (const float zero : {-128.0F, -3.0F, 0.0F, 127.0F}) {
    const auto plain = [&](const float* x, size_t n, double* y) {
      for (size_t i = 0; i < n; ++i) {
        const double code = std::nearbyint(x[i] * 4.0F) + double{zero};
        y[i] = (std::clamp(code, -128.0, 127.0) - double{zero}) * 0.25;
      }
    };
    const auto kernel = [&](const float* x, size_t rows, size_t n, float* y) {
      round_to_codes(x, rows * n, 0.25F, zero, y);
    };
    std::vector<float> x = with_rests(normal_floats(kRows * 35, 1, 20), 35);
    for (size_t i = 0; i < 8; ++i) x[i] = static_cast<float>(i) * 0.125F - 0.5F;  // ties
    x[9] = 3e38F;
    expect_rows(x, 35, plain, kernel, 0);
  }
}

TEST(Rows, SiluMatchesPlainLoops) {
  for (const size_t width : kWidths) {
    std::vector<float> up = normal_floats(width, 2);
    std::vector<float> gate = normal_floats(width, 1, 3);
    const float rests[] = {kInf, -kInf, -200, kNan, 88.8F, -88.8F, -104.5F};
    for (size_t i = 0; i < std::min(width / 3, std::size(rests)); ++i) gate[i] = rests[i];
    for_each_target([&] {
      std::vector<float> y(width);
      silu_times(gate.data(), up.data(), width, y.data());
      for (size_t i = 0; i < width; ++i) {
        const double g = gate[i];
        const double want = g / (1 + std::exp(-g)) * double{up[i]};
        ASSERT_TRUE(is_near(y[i], want, 1e-6 * std::fabs(want) + 1e-36))
            << width << " at " << i << ": want " << want << ", got " << y[i];
      }
      std::vector<float> parts(width);
      const size_t cut = width / 3;
      silu_times(gate.data() + cut, up.data() + cut, width - cut, parts.data() + cut);
      silu_times(gate.data(), up.data(), cut, parts.data());
      EXPECT_TRUE(same_bits(y, parts)) << width;
    });
  }
}

TEST(Rows, ExpIsWithinTwoUnitsInTheLastPlace) {
  std::vector<float> x;
  for (int i = 0; i < 150'000; ++i) x.push_back(-110.0F + static_cast<float>(i) * 0.00137F);
  for (const float v : {0.0F, -0.0F, kInf, -kInf, kNan, 88.72283F, 88.7229F, -87.4F, -103.97F,
                        -103.98F, 1e30F, -1e30F, 1e-40F})
    x.push_back(v);
  for_each_target([&] {
    std::vector<float> y(x.size());
    exp_all(x.data(), x.size(), y.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = std::exp(double{x[i]});
      const float rounded = std::fabs(static_cast<float>(want));
      const double unit = double{std::nextafter(rounded, kInf)} - double{rounded};
      ASSERT_TRUE(is_near(y[i], want, rounded == 0 ? 0x1p-149 : 2 * unit))
          << "exp(" << x[i] << "): want " << want << ", got " << y[i];
    }
  });
}

TEST(Rows, RotationMatchesPlainLoops) {
  constexpr size_t kHeads = 3;
  for (const size_t size : {2UL, 6UL, 34UL, 64UL, 80UL, 128UL}) {
    const std::vector<float> x = normal_floats(kHeads * size, 1);
    const std::vector<float> cos = normal_floats(size, 2);
    const std::vector<float> sin = normal_floats(size, 3);
    for (const Pairs pairs : {Pairs::kNeighbours, Pairs::kHalves}) {
      const bool halves = pairs == Pairs::kHalves;
      for_each_target([&] {
        std::vector<float> y = x;
        rotate(y.data(), cos.data(), sin.data(), pairs, kHeads, size, y.data());
        for (size_t i = 0; i < kHeads * size / 2; ++i) {
          const size_t at = i % (size / 2);
          const size_t head = i / (size / 2) * size;
          const size_t a = head + (halves ? at : 2 * at);
          const size_t b = head + (halves ? at + size / 2 : 2 * at + 1);
          const size_t of_b = halves ? at + size / 2 : at;
          const double want_a = double{x[a]} * double{cos[at]} - double{x[b]} * double{sin[at]};
          const double want_b = double{x[b]} * double{cos[of_b]} + double{x[a]} * double{sin[of_b]};
          ASSERT_TRUE(is_near(y[a], want_a, 1e-6 * (1 + std::fabs(want_a)))) << size;
          ASSERT_TRUE(is_near(y[b], want_b, 1e-6 * (1 + std::fabs(want_b)))) << size;
        }
        std::vector<float> apart(x.size());
        for (size_t h = 0; h < kHeads; ++h)
          rotate(x.data() + h * size, cos.data(), sin.data(), pairs, 1, size,
                 apart.data() + h * size);
        EXPECT_TRUE(same_bits(y, apart)) << size;
      });
    }
  }
}

bool is_nan(uint16_t half) { return (half & 0x7FFFU) > 0x7C00; }

TEST(Rows, AllHalvesAreWidenedAndComeBack) {
  std::vector<uint16_t> halves(65536);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  for_each_target([&] {
    std::vector<float> wide(halves.size());
    from_f16(halves.data(), halves.size(), wide.data());
    std::vector<uint16_t> back(halves.size());
    to_f16(wide.data(), wide.size(), back.data());
    for (size_t i = 0; i < halves.size(); ++i) {
      if (is_nan(halves[i])) {
        ASSERT_TRUE(std::isnan(wide[i])) << i;
        ASSERT_TRUE(is_nan(back[i])) << i;
        continue;
      }
      ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(half_to_float(halves[i])))
          << i;
      ASSERT_EQ(back[i], halves[i]);
    }
    for (const size_t count : {0UL, 1UL, 3UL, 17UL}) {  // writes no more than that
      std::vector<float> few(count + 1, -1.0F);
      from_f16(halves.data() + 0x3C00, count, few.data());
      EXPECT_EQ(few[count], -1.0F);
      std::vector<uint16_t> few_halves(count + 1, 7);
      to_f16(wide.data() + 0x3C00, count, few_halves.data());
      EXPECT_EQ(few_halves[count], 7);
      for (size_t i = 0; i < count; ++i) EXPECT_EQ(few_halves[i], halves[0x3C00 + i]);
    }
  });
}

TEST(Rows, FloatsAreRoundedToTheNearestHalf) {
  std::vector<float> x = {kInf, -kInf, kNan, -kNan, 65519.99F, 65520, 65536, 1e30F, 3.4e38F};
  // Between all neighbours: halfway, and a bit to either side.
  for (uint16_t half = 0; half < 0x7C00; ++half) {
    const float low = half_to_float(half);
    const float high = half == 0x7BFF ? 65536.0F : half_to_float(static_cast<uint16_t>(half + 1));
    const float middle = low + (high - low) / 2;
    for (const float v : {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, kInf)}) {
      x.push_back(v);
      x.push_back(-v);
    }
  }
  std::mt19937 engine(5);
  for (int i = 0; i < 200'000; ++i)
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(engine())));
  for_each_target([&] {
    std::vector<uint16_t> y(x.size());
    to_f16(x.data(), x.size(), y.data());
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i])) {
        ASSERT_TRUE(is_nan(y[i])) << i;
      } else {
        ASSERT_EQ(y[i], float_to_half(x[i])) << x[i];
      }
    }
  });
}

}  // namespace
}  // namespace pteryx::cpu
