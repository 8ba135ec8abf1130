// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/grid.h"

#include <gtest/gtest.h>

namespace pteryx::gpu {
namespace {

constexpr uint64_t kLimit = 65535;

TEST(FlatGrid, OneDimensionUpToTheLimit) {
  const Caps caps;
  EXPECT_EQ(flat_grid(0, caps), (Grid{0, 1, 1}));
  EXPECT_EQ(flat_grid(1, caps), (Grid{1, 1, 1}));
  EXPECT_EQ(flat_grid(kLimit, caps), (Grid{65535, 1, 1}));
}

TEST(FlatGrid, FoldsAboveTheLimit) {
  const Caps caps;
  for (const uint64_t n :
       {kLimit + 1, 2 * kLimit, 2 * kLimit + 1, uint64_t{1} << 24, kLimit * kLimit}) {
    const Grid grid = flat_grid(n, caps);
    const uint64_t covered = uint64_t{grid.x} * grid.y;
    EXPECT_GE(covered, n);
    EXPECT_LT(covered - n, grid.y) << "more than one workgroup a row is wasted at " << n;
    EXPECT_LE(grid.x, kLimit);
    EXPECT_LE(grid.y, kLimit);
    EXPECT_EQ(grid.z, 1u);
  }
}

TEST(FlatGrid, FollowsTheLimitOfTheDevice) {
  const Caps caps = {.max_workgroups_per_dim = 10};
  EXPECT_EQ(flat_grid(10, caps), (Grid{10, 1, 1}));
  EXPECT_EQ(flat_grid(11, caps), (Grid{6, 2, 1}));
}

}  // namespace
}  // namespace pteryx::gpu
