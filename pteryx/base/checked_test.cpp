// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/checked.h"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace pteryx {
namespace {

constexpr uint64_t kMaxU = std::numeric_limits<uint64_t>::max();
constexpr int64_t kMinI = std::numeric_limits<int64_t>::min();

TEST(Checked, MulSaysWhenItOverflows) {
  EXPECT_EQ(checked_mul<uint64_t>(1U << 31, 1U << 31), uint64_t{1} << 62);
  EXPECT_EQ(checked_mul<uint64_t>(uint64_t{1} << 32, uint64_t{1} << 32), std::nullopt);
  EXPECT_EQ(checked_mul<uint64_t>(kMaxU, 1), kMaxU);
  EXPECT_EQ(checked_mul<uint64_t>(kMaxU, 0), 0U);
  EXPECT_EQ(checked_mul<int64_t>(kMinI, -1), std::nullopt);
  EXPECT_EQ(checked_mul<int32_t>(-46341, 46341), std::nullopt);
}

TEST(Checked, AddSaysWhenItOverflows) {
  EXPECT_EQ(checked_add<uint64_t>(kMaxU - 1, 1), kMaxU);
  EXPECT_EQ(checked_add<uint64_t>(kMaxU, 1), std::nullopt);
  EXPECT_EQ(checked_add<int64_t>(kMinI, -1), std::nullopt);
  EXPECT_EQ(checked_add<uint8_t>(200, 100), std::nullopt);
}

TEST(Checked, RangeNeverWraps) {
  EXPECT_TRUE(in_range(0, 0, 0));
  EXPECT_TRUE(in_range(4, 4, 8));
  EXPECT_TRUE(in_range(8, 0, 8));
  EXPECT_FALSE(in_range(9, 0, 8));
  EXPECT_FALSE(in_range(4, 5, 8));
  EXPECT_FALSE(in_range(1, kMaxU, 8));
  EXPECT_FALSE(in_range(kMaxU, 1, 8));
  EXPECT_FALSE(in_range(kMaxU, kMaxU, kMaxU));
  EXPECT_TRUE(in_range(0, kMaxU, kMaxU));
}

TEST(Checked, FitsComparesValuesNotBits) {
  EXPECT_TRUE(fits<int32_t>(int64_t{-1}));
  EXPECT_FALSE(fits<uint32_t>(int64_t{-1}));
  EXPECT_FALSE(fits<int32_t>(int64_t{1} << 31));
  EXPECT_TRUE(fits<uint32_t>((int64_t{1} << 32) - 1));
  EXPECT_FALSE(fits<int64_t>(kMaxU));
}

TEST(Checked, Rounding) {
  EXPECT_EQ(align_up(0, 16), 0U);
  EXPECT_EQ(align_up(1, 16), 16U);
  EXPECT_EQ(align_up(16, 16), 16U);
  EXPECT_EQ(div_up(0, 64), 0U);
  EXPECT_EQ(div_up(1, 64), 1U);
  EXPECT_EQ(div_up(64, 64), 1U);
  EXPECT_EQ(div_up(65, 64), 2U);
  EXPECT_EQ(div_up(kMaxU, 2), (kMaxU / 2) + 1);
}

}  // namespace
}  // namespace pteryx
