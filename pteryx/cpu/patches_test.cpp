// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/patches.h"

#include <gtest/gtest.h>

#include "pteryx/cpu/testing/each_target.h"
#include "pteryx/cpu/testing/plain.h"
#include "pteryx/cpu/testing/windows.h"

namespace pteryx::cpu {
namespace {

// Where results and entries of the kernel meet.
size_t start_of(const Window& w, size_t position) {
  return position / w.out[2] / w.out[1] * w.plane_step() +
         position / w.out[2] % w.out[1] * w.row_step() + position % w.out[2];
}

TEST(Patches, HaveWhatEachResultReads) {
  testing::for_each_target([] {
    for (const Window& w : testing::some_windows()) {
      const std::vector<float> x = testing::normal_floats(testing::elements_of(w), 1);
      std::vector<float> padded(w.plane(), -7.0F);
      pad_plane(w, x.data(), padded.data());
      for (size_t p = 0; p < w.positions(); ++p) {
        for (size_t t = 0; t < w.taps(); ++t) {
          const auto at = testing::place_of(w, p, t);
          ASSERT_EQ(padded.at(start_of(w, p) + w.start_of(t)), at ? x[*at] : 0.0F)
              << "position " << p << ", tap " << t;
        }
      }
    }
  });
}

TEST(Patches, WhatIsAroundAPlaneStays) {
  testing::for_each_target([] {
    for (const Window& w : testing::some_windows()) {
      const std::vector<float> x(testing::elements_of(w), 1);
      std::vector<float> padded(w.plane(), -7.0F);
      fill_plane(w, x.data(), padded.data());
      for (size_t p = 0; p < w.positions(); ++p) {
        for (size_t t = 0; t < w.taps(); ++t)
          ASSERT_EQ(padded.at(start_of(w, p) + w.start_of(t)),
                    testing::place_of(w, p, t) ? 1.0F : -7.0F);
      }
    }
  });
}

}  // namespace
}  // namespace pteryx::cpu
