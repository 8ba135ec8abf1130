// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/order.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace pteryx {
namespace {

TEST(SortedPlaces, AreThoseOfAStableSort) {
  std::mt19937 random(7);
  for (size_t count = 0; count < 200; ++count) {
    std::vector<uint32_t> keys(count);
    for (uint32_t& k : keys) k = static_cast<uint32_t>(random() % 20);
    const auto before = [&](uint32_t a, uint32_t b) { return keys[a] > keys[b]; };
    std::vector<uint32_t> expected = places_of(count);
    std::stable_sort(expected.begin(), expected.end(), before);
    ASSERT_EQ(sorted_places(count, before), expected) << count;
  }
}

TEST(SortPlaces, SortsSomeOfAList) {
  std::vector<uint32_t> places = {7, 3, 5};
  sort_places(places, [](uint32_t a, uint32_t b) { return a < b; });
  EXPECT_EQ(places, (std::vector<uint32_t>{3, 5, 7}));
}

}  // namespace
}  // namespace pteryx
