// Products of matrices against plain loops. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/gemm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/base/dtype.h"
#include "pteryx/cpu/patches.h"
#include "pteryx/cpu/testing/aligned.h"
#include "pteryx/cpu/testing/each_target.h"
#include "pteryx/cpu/testing/plain.h"
#include "pteryx/cpu/testing/windows.h"

namespace pteryx::cpu {
namespace {
using testing::Aligned;
using testing::for_each_target;
using testing::is_near;
using testing::normal_floats;
using testing::same_bits;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Sizes {
  size_t m, n, k;
};
// Around tiles, panels and blocks of every set of instructions, and columns that vectors leave
// over.
constexpr Sizes kSizes[] = {{1, 1, 1},    {4, 16, 1},    {3, 17, 5},    {7, 49, 130}, {6, 196, 64},
                            {13, 66, 31}, {25, 100, 40}, {40, 64, 128}, {5, 33, 257}, {50, 51, 129},
                            {9, 3, 300},  {520, 20, 9},  {2, 7, 0}};

// b [k, n] as the product takes it.
struct Made {
  Right right;
  std::vector<float> rows;  // [k, n]
  std::vector<float> floats;
  std::vector<uint16_t> halves;
};

Made make_right(RightKind kind, size_t n, size_t k) {
  Made made;
  made.rows = normal_floats(n * k, 7);
  made.right = {.kind = kind, .data = made.rows.data(), .stride = n};
  if (kind == RightKind::kRows) return made;
  made.right.stride = k + 1;
  made.floats.resize(n * (k + 1));
  made.halves.resize(n * (k + 1));
  for (size_t i = 0; i < n * k; ++i) {
    const size_t at = i % n * (k + 1) + i / n;
    made.halves[at] = float_to_half(made.rows[i]);
    if (kind == RightKind::kHalfColumns) made.rows[i] = half_to_float(made.halves[at]);
    made.floats[at] = made.rows[i];
  }
  made.right.data = made.floats.data();
  if (kind == RightKind::kHalfColumns) made.right.data = made.halves.data();
  return made;
}

// As so many threads would cut it, one item after the other, backwards.
std::vector<float> multiplied(Gemm g, size_t threads) {
  std::vector<float> y(g.m * g.y_row, -7.0F);
  g.y = y.data();
  const GemmItems items = cut_gemm(g, threads);
  const Aligned scratch(gemm_scratch_bytes());
  const Panels panels = panels_of(g, items);
  const Aligned memory(std::max<size_t>(panels.bytes, 1));
  if (panels.count > 0) g.panels = memory.data();
  for (size_t i = panels.count; i-- > 0;) gather_panel(g, items, i, scratch.data());
  for (size_t i = items.count(); i-- > 0;) multiply(g, items, i, scratch.data());
  return y;
}

void expect_sums(const Gemm& g, const std::vector<float>& b, const std::vector<float>& got) {
  for (size_t r = 0; r < g.m; ++r) {
    for (size_t c = 0; c < g.n; ++c) {
      double want = 0;
      double size = 0;
      for (size_t i = 0; i < g.k; ++i) {
        const double term = double{g.a[r * g.a_row + i]} * double{b[i * g.n + c]};
        want += term;
        size += std::fabs(term);
      }
      ASSERT_TRUE(is_near(got[r * g.y_row + c], want, 1e-6 * (size + 1e-3)))
          << "row " << r << ", column " << c << ": " << got[r * g.y_row + c] << ", not " << want;
    }
    for (size_t c = g.n; c < g.y_row; ++c) ASSERT_EQ(got[r * g.y_row + c], -7.0F);
  }
}

TEST(Gemm, PanelsOfSmallerProductsTakeNoMore) {
  for_each_target([] {
    for (size_t threads = 1; threads < 5; ++threads) {
      for (size_t m = 1; m < 800; m = m * 2 + 3) {
        for (const RightKind kind : {RightKind::kRows, RightKind::kPatches}) {
          const Gemm most{.m = m, .n = 1500, .k = 200, .b = {.kind = kind}};
          const size_t bytes = most_panel_bytes(most, threads);
          for (size_t n = 0; n <= most.n; ++n) {
            for (const size_t rows : {m, m / 2, m / 3}) {
              Gemm less = most;
              less.m = rows;
              less.n = n;
              const GemmItems items = cut_gemm(less, threads);
              ASSERT_LE(panels_of(less, items).bytes, bytes) << rows << " of " << m << ", " << n;
            }
          }
        }
      }
    }
  });
}

TEST(Gemm, IsThePlainProductHoweverItIsCut) {
  for_each_target([] {
    for (const RightKind kind : {RightKind::kRows, RightKind::kColumns, RightKind::kHalfColumns}) {
      for (const Sizes& s : kSizes) {
        SCOPED_TRACE(::testing::Message() << s.m << "x" << s.n << "x" << s.k);
        const std::vector<float> a = normal_floats(s.m * (s.k + 3), 3);
        const Made b = make_right(kind, s.n, s.k);
        const Gemm g{.m = s.m,
                     .n = s.n,
                     .k = s.k,
                     .a = a.data(),
                     .a_row = s.k + 3,
                     .b = b.right,
                     .finish = {},
                     .y_row = s.n + 2};
        const std::vector<float> alone = multiplied(g, 1);
        expect_sums(g, b.rows, alone);
        EXPECT_TRUE(same_bits(alone, multiplied(g, 8)));
      }
    }
  });
}

TEST(Gemm, FinishesSums) {
  const size_t m = 9;
  const size_t n = 50;
  const size_t k = 140;
  const std::vector<float> a = normal_floats(m * k, 1);
  const std::vector<float> b = normal_floats(k * n, 2);
  const std::vector<float> of_rows = normal_floats(m, 3);
  const std::vector<float> of_columns = normal_floats(n, 4);
  const std::vector<float> residual = normal_floats(m * n, 5);
  for_each_target([&] {
    Gemm g{.m = m, .n = n, .k = k, .a = a.data(), .a_row = k, .b = {}, .finish = {}, .y_row = n};
    g.b = {.kind = RightKind::kRows, .data = b.data(), .stride = n};
    const std::vector<float> sums = multiplied(g, 2);
    g.finish = {.factor = {of_rows.data(), 1, 0},
                .shift = {of_columns.data(), 0, 1},
                .activation = Activation::kRelu,
                .scale = {of_columns.data(), 0, 1},
                .residual = {residual.data(), n, 1},
                .low = -0.5F,
                .high = 6};
    const std::vector<float> got = multiplied(g, 2);
    for (size_t i = 0; i < m * n; ++i) {
      const double x = double{sums[i]} * double{of_rows[i / n]} + double{of_columns[i % n]};
      const double y = std::max(x, 0.0) * double{of_columns[i % n]} + double{residual[i]};
      ASSERT_TRUE(is_near(got[i], std::clamp(y, -0.5, 6.0), 1e-4)) << i;
    }
  });
}

// Of a row of a, and of a column of b, whatever else is in the tile.
TEST(Gemm, KeepsNanInfinitiesAndDenormalsWhereTheyBelong) {
  const Sizes s{8, 49, 20};
  std::vector<float> a(s.m * s.k, 1);
  std::vector<float> b(s.k * s.n, 1);
  a[2 * s.k + 5] = kInf;
  a[3 * s.k + 5] = kNan;
  std::fill(a.begin() + static_cast<std::ptrdiff_t>(4 * s.k),
            a.begin() + static_cast<std::ptrdiff_t>(5 * s.k), 1e-40F);
  b[7 * s.n + 48] = -kInf;
  b[7 * s.n + 3] = kNan;
  for_each_target([&] {
    Gemm g{.m = s.m,
           .n = s.n,
           .k = s.k,
           .a = a.data(),
           .a_row = s.k,
           .b = {},
           .finish = {},
           .y_row = s.n};
    g.b = {.kind = RightKind::kRows, .data = b.data(), .stride = s.n};
    expect_sums(g, b, multiplied(g, 2));
    EXPECT_NEAR(multiplied(g, 2)[4 * s.n], 20e-40, 1e-43);
  });
}

// A convolution: element [k, n] is what position n sees through entry k of the kernel.
TEST(Gemm, GathersPatches) {
  constexpr size_t kChannels = 3;
  for_each_target([&] {
    for (const Window& w : testing::some_windows()) {
      const size_t in = testing::elements_of(w);
      const std::vector<float> x = normal_floats(kChannels * in, 4);
      std::vector<float> padded(kChannels * w.plane() + kSpare);
      std::vector<size_t> starts;
      for (size_t c = 0; c < kChannels; ++c) {
        pad_plane(w, x.data() + c * in, padded.data() + c * w.plane());
        for (size_t t = 0; t < w.taps(); ++t) starts.push_back(c * w.plane() + w.start_of(t));
      }
      Gemm g{.m = 26, .n = w.positions(), .k = starts.size(), .b = {}, .finish = {}};
      g.y_row = g.n;
      const std::vector<float> a = normal_floats(g.m * g.k, 5);
      g.a = a.data();
      g.a_row = g.k;
      g.b = {.kind = RightKind::kPatches,
             .data = padded.data(),
             .starts = starts.data(),
             .width = w.out[2],
             .height = w.out[1],
             .row = w.row_step(),
             .plane = w.plane_step()};
      std::vector<float> rows(g.k * g.n);
      for (size_t i = 0; i < rows.size(); ++i) {
        const auto at = testing::place_of(w, i % g.n, i / g.n % w.taps());
        if (at) rows[i] = x[i / g.n / w.taps() * in + *at];
      }
      const std::vector<float> alone = multiplied(g, 1);
      expect_sums(g, rows, alone);
      EXPECT_TRUE(same_bits(alone, multiplied(g, 8)));
    }
  });
}

}  // namespace
}  // namespace pteryx::cpu
