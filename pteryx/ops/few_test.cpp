// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/few.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace pteryx::ops {
namespace {

TEST(Few, HoldsWhatIsPutInWhereverItLies) {
  Few<int, 3> few;
  std::vector<int> want;
  EXPECT_EQ(few.begin(), few.end());
  for (int i = 0; i < 10; ++i) {
    few.push_back(i * i);
    want.push_back(i * i);
    const Few<int, 3> copy = few;
    EXPECT_TRUE(std::ranges::equal(few, want)) << i;
    EXPECT_TRUE(std::ranges::equal(copy, want)) << i;
    EXPECT_EQ(few.size(), want.size());
  }
}

}  // namespace
}  // namespace pteryx::ops
