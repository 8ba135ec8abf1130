// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/depthwise.h"

#include <cmath>
#include <initializer_list>
#include <limits>

#include <gtest/gtest.h>

#include "pteryx/cpu/testing/each_target.h"
#include "pteryx/cpu/testing/plain.h"
#include "pteryx/cpu/testing/windows.h"

namespace pteryx::cpu {
namespace {
using testing::normal_floats;

void expect_plane(const Window& w, const std::vector<float>& x, const std::vector<float>& kernel,
                  bool directly) {
  std::vector<float> padded(w.plane() + kSpare);
  pad_plane(w, x.data(), padded.data());
  const std::vector<size_t> starts = testing::starts_of(w);
  const std::vector<float> shift = {0, 0.5F, 0};
  const std::vector<float> residual = normal_floats(2 * w.positions(), 3);
  const Finish finish{
      .shift = {shift.data(), 1, 0}, .residual = {residual.data(), w.positions(), 1}, .low = -1};
  std::vector<float> y(w.positions() + 1, -7.0F);
  if (directly) {
    convolve_directly(w, x.data(), kernel.data(), finish, 1, y.data());
  } else {
    convolve_plane(w, starts.data(), padded.data(), kernel.data(), finish, 1, y.data());
  }
  for (size_t p = 0; p < w.positions(); ++p) {
    double want = 0.5 + double{residual[w.positions() + p]};
    for (size_t t = 0; t < w.taps(); ++t) {
      const auto at = testing::place_of(w, p, t);
      // In the padding, too: infinity times 0 is no number.
      want += double{kernel[t]} * (at ? double{x[*at]} : 0.0);
    }
    want = want < -1 ? -1 : want;
    ASSERT_TRUE(testing::is_near(y[p], want, 1e-5)) << p << ": " << y[p] << ", not " << want;
  }
  EXPECT_EQ(y.back(), -7.0F);
}

void expect_plane(const Window& w, const std::vector<float>& x) {
  const std::vector<float> kernel = normal_floats(w.taps(), 2);
  expect_plane(w, x, kernel, false);
  if (convolves_directly(w)) expect_plane(w, x, kernel, true);
}

std::vector<Window> windows() {
  std::vector<Window> all = testing::some_windows();
  for (const size_t k : std::initializer_list<size_t>{3, 5, 7}) {
    for (const size_t stride : std::initializer_list<size_t>{1, 2}) {
      for (const size_t width : std::initializer_list<size_t>{5, 31, 56, 113}) {
        Window w{.in = {1, 9, width}, .kernel = {1, k, k}, .stride = {1, stride, stride}};
        w.padding = {0, k / 2, width % 2 == 0 ? k / 2 : k - 1};
        for (size_t axis = 1; axis < 3; ++axis) w.out[axis] = (w.padded(axis) - k) / stride + 1;
        all.push_back(w);
      }
    }
  }
  return all;
}

TEST(Depthwise, IsThePlainSum) {
  testing::for_each_target([] {
    for (const Window& w : windows()) expect_plane(w, normal_floats(testing::elements_of(w), 1));
  });
}

TEST(Depthwise, NanAndInfinitiesStayWhereTheyAreRead) {
  testing::for_each_target([] {
    for (const Window& w : windows()) {
      std::vector<float> x = normal_floats(testing::elements_of(w), 1);
      x[x.size() / 2] = std::numeric_limits<float>::quiet_NaN();
      x[0] = std::numeric_limits<float>::infinity();
      expect_plane(w, x);
    }
  });
}

}  // namespace
}  // namespace pteryx::cpu
