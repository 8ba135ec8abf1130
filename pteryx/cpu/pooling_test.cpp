// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/pooling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "pteryx/cpu/testing/each_target.h"
#include "pteryx/cpu/testing/plain.h"
#include "pteryx/cpu/testing/windows.h"

namespace pteryx::cpu {
namespace {
using testing::normal_floats;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<Window> flat_windows() {
  std::vector<Window> all = testing::some_windows();
  std::erase_if(all, [](const Window& w) { return w.in[0] > 1; });
  return all;
}

std::vector<float> padded_with(const Window& w, const std::vector<float>& x, float around) {
  std::vector<float> padded(w.plane() + kSpare, around);
  fill_plane(w, x.data(), padded.data());
  return padded;
}

TEST(Pooling, MeansAreSumsOverRowsTimesColumns) {
  testing::for_each_target([] {
    for (const Window& w : flat_windows()) {
      std::vector<float> x = normal_floats(testing::elements_of(w), 1);
      if (x.size() > 20) x[20] = kInf;
      const std::vector<float> padded = padded_with(w, x, 0);
      std::vector<float> rows(w.out[1]);
      std::vector<float> columns(w.out[2]);
      std::iota(rows.begin(), rows.end(), 1.0F);
      std::iota(columns.begin(), columns.end(), 3.0F);
      const std::vector<size_t> starts = testing::starts_of(w);
      std::vector<float> y(w.positions());
      pool_mean({w, starts.data()}, padded.data(), rows.data(), columns.data(), y.data());
      for (size_t p = 0; p < w.positions(); ++p) {
        double sum = 0;
        for (size_t t = 0; t < w.taps(); ++t) {
          if (const auto at = testing::place_of(w, p, t)) sum += double{x[*at]};
        }
        const double by = double{rows[p / w.out[2]]} * double{columns[p % w.out[2]]};
        ASSERT_TRUE(testing::is_near(y[p], sum / by, 1e-5)) << p;
      }
    }
  });
}

// The largest element of a window as a plain loop finds it.
struct Found {
  float value = -kInf;
  int32_t place = -1;
};
Found largest(const Window& w, const std::vector<float>& x, size_t position) {
  Found found;
  for (size_t t = 0; t < w.taps(); ++t) {
    const auto at = testing::place_of(w, position, t);
    if (!at) continue;
    const bool better = x[*at] > found.value || std::isnan(x[*at]);
    if (better) found.value = x[*at];
    if (better || found.place < 0) found.place = static_cast<int32_t>(*at);
  }
  return found;
}

// What Places has for the windows along an axis.
struct Begins {
  std::vector<int32_t> windows;
  std::vector<int32_t> inner;
  Begins(const Window& w, size_t axis, size_t row) {
    for (size_t o = 0; o < w.out[axis]; ++o) {
      const auto begin =
          static_cast<int32_t>(o * w.stride[axis]) - static_cast<int32_t>(w.padding[axis]);
      int32_t inside = begin;
      while (inside < 0) inside += static_cast<int32_t>(w.dilation[axis]);
      windows.push_back(begin * static_cast<int32_t>(row));
      inner.push_back(inside * static_cast<int32_t>(row));
    }
  }
};

void expect_largest(const Window& w, const std::vector<float>& x) {
  const std::vector<float> padded = padded_with(w, x, -kInf);
  const std::vector<size_t> starts = testing::starts_of(w);
  std::vector<int32_t> taps(w.taps());
  for (size_t t = 0; t < w.taps(); ++t)
    taps[t] = static_cast<int32_t>(t / w.kernel[2] * w.dilation[1] * w.in[2] +
                                   t % w.kernel[2] * w.dilation[2]);
  const Begins rows(w, 1, w.in[2]);
  const Begins columns(w, 2, 1);
  std::vector<int32_t> at(w.positions());
  const Places places{.taps = taps.data(),
                      .rows = rows.windows.data(),
                      .columns = columns.windows.data(),
                      .inner_rows = rows.inner.data(),
                      .inner_columns = columns.inner.data(),
                      .to = at.data()};
  std::vector<float> y(w.positions());
  std::vector<float> alone(w.positions());
  pool_max({w, starts.data()}, padded.data(), places, y.data());
  pool_max({w, starts.data()}, padded.data(), {}, alone.data());
  for (size_t p = 0; p < w.positions(); ++p) {
    const Found want = largest(w, x, p);
    if (want.place < 0) continue;  // of windows in the padding there is no such thing
    ASSERT_TRUE(testing::is_near(y[p], double{want.value}, 0)) << p;
    ASSERT_TRUE(testing::is_near(alone[p], double{want.value}, 0)) << p;
    ASSERT_EQ(at[p], want.place) << p;
  }
}

TEST(Pooling, FindsTheLargestAndWhereItIs) {
  testing::for_each_target([] {
    for (const Window& w : flat_windows()) {
      std::vector<float> x = normal_floats(testing::elements_of(w), 1);
      expect_largest(w, x);
      for (float& v : x) v = std::max(v, 0.0F);  // many that are equal
      expect_largest(w, x);
    }
  });
}

TEST(Pooling, NanIsLargestAndMinusInfinityHasAPlace) {
  testing::for_each_target([] {
    for (const Window& w : flat_windows()) {
      std::vector<float> x(testing::elements_of(w), -kInf);
      expect_largest(w, x);
      for (size_t i = 0; i < x.size(); i += 5) x[i] = kNan;
      expect_largest(w, x);
    }
  });
}

}  // namespace
}  // namespace pteryx::cpu
