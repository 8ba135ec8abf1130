// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/dims.h"

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace pteryx {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(Dims, HoldsUpToEight) {
  const Dims d = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(d.rank(), kMaxRank);
  EXPECT_EQ(d.back(), 8);
  EXPECT_EQ(Dims().rank(), 0U);
  EXPECT_TRUE(Dims().empty());
  EXPECT_EQ(Dims::filled(3, 7), (Dims{7, 7, 7}));
}

TEST(Dims, ComparesRankAndValues) {
  EXPECT_EQ((Dims{1, 2}), (Dims{1, 2}));
  EXPECT_FALSE((Dims{1, 2}) == (Dims{1, 3}));
  EXPECT_FALSE((Dims{1}) == (Dims{1, 1}));
}

TEST(Dims, InsertAndErase) {
  Dims d = {1, 3};
  d.insert(1, 2);
  d.insert(0, 0);
  d.insert(4, 4);
  EXPECT_EQ(d, (Dims{0, 1, 2, 3, 4}));
  d.erase(0);
  d.erase(3);
  d.erase(1);
  EXPECT_EQ(d, (Dims{1, 3}));
}

TEST(Numel, IsTheProduct) {
  EXPECT_EQ(numel({}), 1);
  EXPECT_EQ(numel({2, 3, 4}), 24);
  EXPECT_EQ(numel({2, 0, 4}), 0);
}

TEST(CheckedNumel, AcceptsWhatFits) {
  EXPECT_EQ(checked_numel(Dims{2, 3}.span(), 4), 6);
  EXPECT_EQ(checked_numel(Dims{}.span(), 8), 1);
  EXPECT_EQ(checked_numel(Dims{kMax}.span(), 1), kMax);
  EXPECT_EQ(checked_numel(Dims{kMax / 8}.span(), 8), kMax / 8);
  EXPECT_EQ(checked_numel(Dims{0, 5}.span(), 4), 0);
}

TEST(CheckedNumel, RefusesNegativeAndOverflow) {
  EXPECT_EQ(checked_numel(Dims{2, -1}.span()), std::nullopt);
  EXPECT_EQ(checked_numel(Dims{0, -1}.span()), std::nullopt);
  EXPECT_EQ(checked_numel(Dims{kMax, 2}.span()), std::nullopt);
  EXPECT_EQ(checked_numel(Dims{kMax / 2}.span(), 4), std::nullopt);
  EXPECT_EQ(checked_numel(Dims{int64_t{1} << 32, int64_t{1} << 31}.span()), std::nullopt);
}

// Strides of an empty tensor are computed over its other dims, so their product has to fit too.
TEST(CheckedNumel, RefusesOverflowBesideAZero) {
  EXPECT_EQ(checked_numel(Dims{0, kMax, 2}.span()), std::nullopt);
  EXPECT_EQ(checked_numel(Dims{kMax, 2, 0}.span()), std::nullopt);
}

TEST(Strides, AreRowMajor) {
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (Dims{12, 4, 1}));
  EXPECT_EQ(contiguous_strides({2, 0, 4}), (Dims{4, 4, 1}));
  EXPECT_EQ(contiguous_strides({}), Dims());
}

TEST(Strides, FollowDimOrder) {
  const std::array<uint8_t, 4> channels_last = {0, 2, 3, 1};
  EXPECT_EQ(strides_for_order({2, 3, 4, 5}, channels_last), (Dims{60, 1, 15, 3}));
  const std::array<uint8_t, 2> transposed = {1, 0};
  EXPECT_EQ(strides_for_order({3, 0}, transposed), (Dims{1, 3}));
}

TEST(NormalizeDim, CountsFromTheEnd) {
  EXPECT_EQ(normalize_dim(-1, 4).value(), 3U);
  EXPECT_EQ(normalize_dim(-4, 4).value(), 0U);
  EXPECT_EQ(normalize_dim(3, 4).value(), 3U);
  EXPECT_EQ(normalize_dim(-1, 0).value(), 0U);
  EXPECT_EQ(normalize_dim(0, 0).value(), 0U);
}

TEST(NormalizeDim, RefusesWhatIsOutside) {
  EXPECT_EQ(normalize_dim(4, 4).status().message(), "dim: expected -4 to 3, got 4");
  EXPECT_EQ(normalize_dim(-5, 4).status().message(), "dim: expected -4 to 3, got -5");
  EXPECT_FALSE(normalize_dim(kMax, 0).ok());
}

TEST(Broadcast, FollowsNumpy) {
  EXPECT_EQ(broadcast({2, 1, 4}, {3, 1}), (Dims{2, 3, 4}));
  EXPECT_EQ(broadcast({}, {5}), Dims{5});
  EXPECT_EQ(broadcast({1}, {0}), Dims{0});
  EXPECT_EQ(broadcast({2}, {3}), std::nullopt);
  EXPECT_EQ(broadcast({2}, {0}), std::nullopt);
}

TEST(ToString, IsAList) {
  EXPECT_EQ(to_string(Dims{1, 3, 8}), "[1, 3, 8]");
  EXPECT_EQ(to_string(Dims{}), "[]");
}

}  // namespace
}  // namespace pteryx
