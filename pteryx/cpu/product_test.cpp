// Products against plain loops. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/product.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/base/dtype.h"
#include "pteryx/cpu/pool.h"
#include "pteryx/cpu/testing/aligned.h"
#include "pteryx/cpu/testing/each_target.h"
#include "pteryx/cpu/testing/plain.h"

namespace pteryx::cpu {
namespace {
using testing::Aligned;
using testing::for_each_target;
using testing::is_near;
using testing::normal_floats;
using testing::same_bits;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr WeightKind kKinds[] = {WeightKind::kLowFirst, WeightKind::kHighFirst, WeightKind::kBytes,
                                 WeightKind::kF32, WeightKind::kF16};
constexpr WeightKind kNibbles[] = {WeightKind::kLowFirst, WeightKind::kHighFirst};
constexpr Precision kPrecisions[] = {Precision::kF32, Precision::kF16};

bool is_nibbles(WeightKind kind) {
  return kind == WeightKind::kLowFirst || kind == WeightKind::kHighFirst;
}
bool is_rounded(WeightKind kind, Precision precision) {
  return precision == Precision::kF16 && (is_nibbles(kind) || kind == WeightKind::kBytes);
}

struct Sizes {
  size_t n, k, group;
  bool minimums = false;  // of nibbles
};

// A weight and what it stands for.
struct Made {
  Weight weight;
  std::vector<uint8_t> data;
  std::vector<float> scales;
  std::vector<float> minimums;
  std::vector<double> values;  // [n, k]
};

size_t row_bytes(WeightKind kind, size_t k) {
  switch (kind) {
    case WeightKind::kLowFirst:
    case WeightKind::kHighFirst: return (k + 1) / 2;
    case WeightKind::kBytes: return k;
    case WeightKind::kF32: return k * sizeof(float);
    case WeightKind::kF16: return k * sizeof(uint16_t);
  }
  return 0;
}

Made make_weight(WeightKind kind, const Sizes& s) {
  std::mt19937 engine(static_cast<uint32_t>(s.n * 1000 + s.k));
  Made made;
  Weight& w = made.weight;
  w = {.kind = kind, .n = s.n, .k = s.k, .row_bytes = row_bytes(kind, s.k), .group = s.group};
  w.scale_row = s.n + 3;
  made.data.resize(s.n * w.row_bytes);
  made.scales = normal_floats((s.k + s.group - 1) / s.group * w.scale_row, 1, 0.1F);
  for (float& scale : made.scales) scale = std::fabs(scale) + 0.01F;
  if (s.minimums && is_nibbles(kind)) made.minimums = normal_floats(made.scales.size(), 5, 0.3F);
  const std::vector<float> floats = normal_floats(s.n * s.k, 2);
  for (size_t i = 0; i < s.n * s.k; ++i) {
    const size_t r = i / s.k;
    const size_t c = i % s.k;
    uint8_t* const row = made.data.data() + r * w.row_bytes;
    double value = double{floats[i]};
    if (is_nibbles(kind)) {
      const auto code = static_cast<uint32_t>(engine() % 16);
      const bool low = (c % 2 == 0) == (kind == WeightKind::kLowFirst);
      row[c / 2] = static_cast<uint8_t>(row[c / 2] | (low ? code : code << 4U));
      value = (double{static_cast<float>(code)} - 8) *
              double{made.scales[c / s.group * w.scale_row + r]};
      if (!made.minimums.empty()) value += double{made.minimums[c / s.group * w.scale_row + r]};
    } else if (kind == WeightKind::kBytes) {
      row[c] = static_cast<uint8_t>(engine());
      value = static_cast<int8_t>(row[c]) * double{made.scales[r]};
    } else if (kind == WeightKind::kF32) {
      std::memcpy(row + c * sizeof(float), &floats[i], sizeof(float));
    } else {
      // Some that are no normal numbers.
      const uint16_t half = float_to_half(i % 50 == 0 ? floats[i] * 1e-5F : floats[i]);
      std::memcpy(row + c * sizeof(half), &half, sizeof(half));
      value = double{half_to_float(half)};
    }
    made.values.push_back(value);
  }
  w.data = made.data.data();
  w.scales = made.scales.data();
  if (!made.minimums.empty()) w.minimums = made.minimums.data();
  return made;
}

// Numbers of a weight in blocks of eight columns, rows of them `row` apart; they become what is
// left of them.
std::vector<uint16_t> halve(const Weight& w, std::vector<float>& numbers, size_t row) {
  std::vector<uint16_t> halves(w.n / 8 * row);
  for (size_t n = 0; n < w.n && !numbers.empty(); ++n) {
    for (size_t g = 0; g * w.group < w.k; ++g) {
      float& number = numbers[g * w.scale_row + n];
      const uint16_t half = float_to_half(number);
      halves[n / 8 * row + g * 8 + n % 8] = half;
      number = half_to_float(half);
    }
  }
  return halves;
}

// x [m, k + 1], of which the last column is not for the product.
struct Call {
  const Weight& weight;
  Precision precision;
  size_t m;
  const std::vector<float>& x;

  size_t x_row() const { return weight.k + 1; }
  size_t y_row() const { return weight.n + 2; }
  void prepare_rows(const Aligned& to, size_t first, size_t last) const {
    prepare(weight, m, precision, x.data(), x_row(), first, last, to.data());
  }
  void multiply_range(const Aligned& prepared, size_t begin, size_t end, float* y,
                      void* scratch) const {
    multiply(weight, m, precision, x.data(), x_row(), prepared.data(), begin, end, y, y_row(),
             scratch);
  }
};

// y [m, n + 2], of which two columns are left alone, by ranges of `step` from the last to the
// first.
std::vector<float> product(const Call& c, size_t step) {
  const Aligned prepared(prepared_bytes(c.weight, c.m, c.precision));
  const Aligned scratch(scratch_bytes(c.weight, c.m, c.precision));
  std::vector<float> y(c.m * c.y_row(), -1.0F);
  if (step >= c.weight.n) {
    c.prepare_rows(prepared, 0, c.m);
  } else {
    for (size_t r = c.m; r-- > 0;) c.prepare_rows(prepared, r, r + 1);
  }
  for (size_t i = (c.weight.n + step - 1) / step; i-- > 0;)
    c.multiply_range(prepared, i * step, std::min((i + 1) * step, c.weight.n), y.data(),
                     scratch.data());
  return y;
}

std::vector<float> product_by_threads(const Call& c, size_t threads) {
  constexpr size_t kStep = 8;
  Pool pool(threads);
  const Aligned prepared(prepared_bytes(c.weight, c.m, c.precision));
  const size_t own = (scratch_bytes(c.weight, c.m, c.precision) + 63) / 64 * 64;
  const Aligned scratch(own * threads);
  std::vector<float> y(c.m * c.y_row(), -1.0F);
  pool.run(c.m, [&](size_t r, size_t) { c.prepare_rows(prepared, r, r + 1); });
  pool.run((c.weight.n + kStep - 1) / kStep, [&](size_t i, size_t thread) {
    c.multiply_range(prepared, i * kStep, std::min((i + 1) * kStep, c.weight.n), y.data(),
                     static_cast<std::byte*>(scratch.data()) + thread * own);
  });
  return y;
}

// Sums of products in double precision, and how far f32 sums may be off.
struct Want {
  std::vector<double> y;  // as that of product()
  std::vector<double> tolerance;
};
Want plain_product(const Made& made, const Call& c) {
  Want want{std::vector<double>(c.m * c.y_row(), -1.0), std::vector<double>(c.m * c.y_row())};
  const double relative = is_rounded(c.weight.kind, c.precision) ? 2e-4 : 8e-6;
  for (size_t m = 0; m < c.m; ++m) {
    for (size_t n = 0; n < c.weight.n; ++n) {
      double sum = 0;
      double squares = 0;
      for (size_t k = 0; k < c.weight.k; ++k) {
        const double p = double{c.x[m * c.x_row() + k]} * made.values[n * c.weight.k + k];
        sum += p;
        squares += p * p;
      }
      want.y[m * c.y_row() + n] = sum;
      want.tolerance[m * c.y_row() + n] = relative * std::sqrt(squares) + 1e-6;
    }
  }
  return want;
}

void expect_near(const std::vector<float>& got, const Want& want, const Call& c) {
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_TRUE(is_near(got[i], want.y[i], want.tolerance[i]))
        << "kind " << int{static_cast<uint8_t>(c.weight.kind)} << " precision "
        << int{static_cast<uint8_t>(c.precision)} << " m " << c.m << " n " << c.weight.n << " k "
        << c.weight.k << " group " << c.weight.group << " at " << i / c.y_row() << ", "
        << i % c.y_row() << ": want " << want.y[i] << ", got " << got[i];
  }
}

constexpr Sizes kSizes[] = {{5, 32, 32},   {67, 576, 32},  {21, 192, 64},  {9, 256, 128},
                            {7, 100, 100}, {3, 7, 7},      {1, 1, 1},      {18, 160, 160},
                            {130, 64, 32}, {70, 4352, 32}, {6, 4130, 4130}};
constexpr Sizes kSizesOfMinimums[] = {{5, 32, 32, true},    {67, 576, 32, true},
                                      {21, 192, 64, true},  {7, 100, 100, true},
                                      {70, 4352, 32, true}, {3, 7, 7, true}};

void expect_products(std::span<const WeightKind> kinds, std::span<const Sizes> sizes) {
  for (const WeightKind kind : kinds) {
    for (const Sizes& s : sizes) {
      const Made made = make_weight(kind, s);
      for (const size_t m : {1UL, 2UL, 3UL, 4UL, 5UL, 6UL, 11UL, 261UL}) {
        if (m > 100 && s.n * s.k > 10'000) continue;
        const std::vector<float> x = normal_floats(m * (s.k + 1), 3);
        for (const Precision precision : kPrecisions) {
          const Call c{made.weight, precision, m, x};
          const Want want = plain_product(made, c);
          for_each_target([&] { expect_near(product(c, s.n), want, c); });
        }
      }
    }
  }
}

TEST(Product, MatchesPlainLoops) { expect_products(kKinds, kSizes); }

TEST(Product, AddsMinimumsOfGroups) { expect_products(kNibbles, kSizesOfMinimums); }

TEST(Product, ScalesAndMinimumsMayBeHalves) {
  for (const Sizes& s : {Sizes{72, 96, 32}, Sizes{24, 4352, 64}, Sizes{8, 40, 40},
                         Sizes{72, 224, 32, true}, Sizes{24, 4352, 64, true}}) {
    for (const WeightKind kind : kNibbles) {
      Made made = make_weight(kind, s);
      Weight with_halves = made.weight;
      with_halves.scale_row = ((s.k + s.group - 1) / s.group + 1) * 8;
      const auto scales = halve(made.weight, made.scales, with_halves.scale_row);
      const auto minimums = halve(made.weight, made.minimums, with_halves.scale_row);
      with_halves.scales = with_halves.minimums = nullptr;
      with_halves.half_scales = scales.data();
      if (s.minimums) with_halves.half_minimums = minimums.data();
      for (const size_t m : {1UL, 4UL, 5UL, 11UL}) {
        const std::vector<float> x = normal_floats(m * (s.k + 1), 3);
        for (const Precision precision : kPrecisions) {
          const Call c{made.weight, precision, m, x};
          const Call of_halves{with_halves, precision, m, x};
          for_each_target([&] {
            const std::vector<float> want = product(c, s.n);
            for (const size_t step : {5UL, 64UL, 100UL})
              EXPECT_TRUE(same_bits(product(of_halves, step), want)) << s.k << ", " << m;
          });
        }
      }
    }
  }
}

TEST(Product, DoesNotDependOnRangesAndThreads) {
  constexpr Sizes kS{131, 224, 32, true};
  for (const WeightKind kind : kKinds) {
    const Made made = make_weight(kind, kS);
    for (const size_t m : {1UL, 3UL, 4UL, 7UL, 260UL}) {
      const std::vector<float> x = normal_floats(m * (kS.k + 1), 3);
      for (const Precision precision : kPrecisions) {
        const Call c{made.weight, precision, m, x};
        for_each_target([&] {
          const std::vector<float> whole = product(c, kS.n);
          for (const size_t step : {5UL, 64UL}) EXPECT_TRUE(same_bits(product(c, step), whole));
          for (const size_t threads : {1UL, 3UL})
            EXPECT_TRUE(same_bits(product_by_threads(c, threads), whole));
        });
      }
    }
  }
}

TEST(Product, OfAPartOfAWeightIsThatOfTheWhole) {
  constexpr Sizes kS{75, 96, 32, true};
  constexpr size_t kFirst = 13;
  for (const WeightKind kind : kKinds) {
    const Made made = make_weight(kind, kS);
    Weight part = made.weight;
    part.n = kS.n - kFirst;
    part.data = made.data.data() + kFirst * part.row_bytes;
    part.scales = made.scales.data() + kFirst;
    if (part.minimums != nullptr) part.minimums += kFirst;
    for (const size_t m : {2UL, 9UL}) {
      const std::vector<float> x = normal_floats(m * (kS.k + 1), 3);
      for (const Precision precision : kPrecisions) {
        const Call c{made.weight, precision, m, x};
        const Call of_part{part, precision, m, x};
        for_each_target([&] {
          const std::vector<float> whole = product(c, kS.n);
          const std::vector<float> got = product(of_part, part.n);
          for (size_t r = 0; r < m; ++r) {
            EXPECT_EQ(std::memcmp(got.data() + r * of_part.y_row(),
                                  whole.data() + r * c.y_row() + kFirst, part.n * sizeof(float)),
                      0);
          }
        });
      }
    }
  }
}

// In f32, infinities and NaN come out as of a plain loop; where x is rounded, all sums of a row
// that has some are NaN. Rows beside it know nothing of it.
TEST(Product, CarriesInfinitiesAndNan) {
  constexpr Sizes kS{19, 96, 32};
  for (const WeightKind kind : kKinds) {
    const Made made = make_weight(kind, kS);
    for (const size_t m : {1UL, 4UL, 7UL}) {
      for (const float rest : {kInf, -kInf, kNan}) {
        for (const size_t at : {0UL, 37UL, 95UL}) {
          std::vector<float> x = normal_floats(m * (kS.k + 1), 3);
          const size_t row = m / 2;
          x[row * (kS.k + 1) + at] = rest;
          for (const Precision precision : kPrecisions) {
            const Call c{made.weight, precision, m, x};
            Want want = plain_product(made, c);
            if (is_rounded(kind, precision))
              for (size_t n = 0; n < kS.n; ++n) want.y[row * c.y_row() + n] = NAN;
            for_each_target([&] { expect_near(product(c, kS.n), want, c); });
          }
        }
      }
    }
  }
}

TEST(Product, WeightsMayBeInfinite) {
  constexpr Sizes kS{6, 33, 33};
  Made floats = make_weight(WeightKind::kF32, kS);
  Made halves = make_weight(WeightKind::kF16, kS);
  const float rests[] = {kInf, -kInf, kNan};
  for (size_t i = 0; i < std::size(rests); ++i) {
    const size_t at = (2 * i) * kS.k + 5 + 10 * i;
    const uint16_t half = float_to_half(rests[i]);
    std::memcpy(floats.data.data() + at * sizeof(float), &rests[i], sizeof(float));
    std::memcpy(halves.data.data() + at * sizeof(half), &half, sizeof(half));
    floats.values[at] = halves.values[at] = double{rests[i]};
  }
  for (const Made* const made : {&floats, &halves}) {
    for (const size_t m : {1UL, 6UL}) {
      const std::vector<float> x = normal_floats(m * (kS.k + 1), 3);
      const Call c{made->weight, Precision::kF32, m, x};
      const Want want = plain_product(*made, c);
      for_each_target([&] { expect_near(product(c, kS.n), want, c); });
    }
  }
}

TEST(Product, LargeAndSmallXDoNotOverflow) {
  constexpr Sizes kS{9, 160, 32};
  for (const WeightKind kind : kKinds) {
    const Made made = make_weight(kind, kS);
    for (const size_t m : {1UL, 4UL, 7UL}) {
      // Up to where the sums of 160 products with weights up to 15 have no f32.
      for (const float size : {1e-25F, 1e26F, 1e28F, 1e30F, 1e33F, 1e35F}) {
        std::vector<float> x = normal_floats(m * (kS.k + 1), 3);
        for (float& v : x) v = std::clamp(v, -1.0F, 1.0F) * size;
        for (const Precision precision : kPrecisions) {
          const Call c{made.weight, precision, m, x};
          const Want want = plain_product(made, c);
          for (const double y : want.y) ASSERT_TRUE(std::isfinite(static_cast<float>(y)));
          for_each_target([&] { expect_near(product(c, kS.n), want, c); });
        }
      }
      // A single large one beside others, where weights leave it out.
      std::vector<float> x = normal_floats(m * (kS.k + 1), 3);
      for (size_t r = 0; r < m; ++r) x[r * (kS.k + 1)] = 1e32F;
      const Call c{made.weight, Precision::kF32, m, x};
      const Want want = plain_product(made, c);
      for_each_target([&] { expect_near(product(c, kS.n), want, c); });
    }
  }
}

}  // namespace
}  // namespace pteryx::cpu
