// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/graph/memory_plan.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace pteryx::graph {
namespace {

TEST(MemoryPlan, ValuesThatMeetInANodeDoNotShare) {
  const Lifetime chain[] = {{100, 0, 1}, {60, 1, 2}, {80, 2, 3}, {10, 3, 3}};
  const SlotPlan plan = assign_slots(chain);
  EXPECT_EQ(plan.slot, (std::vector<uint32_t>{0, 1, 0, 1}));
  EXPECT_EQ(plan.slot_bytes, (std::vector<uint64_t>{100, 60}));
  EXPECT_EQ(plan.total_bytes(), 160U);
}

TEST(MemoryPlan, NothingNeedsNothing) { EXPECT_EQ(assign_slots({}).total_bytes(), 0U); }

TEST(MemoryPlan, RandomLifetimesNeverOverlapInASlot) {
  for (uint32_t seed = 1; seed <= 50; ++seed) {
    std::mt19937 engine(seed);
    std::vector<Lifetime> lives(200);
    for (Lifetime& life : lives) {
      life.bytes = 4 * (1 + engine() % 1000);
      life.first = static_cast<uint32_t>(engine() % 100);
      life.last = life.first + static_cast<uint32_t>(engine() % 20);
    }
    const SlotPlan plan = assign_slots(lives);
    uint64_t sum = 0;
    for (size_t i = 0; i < lives.size(); ++i) {
      sum += lives[i].bytes;
      ASSERT_GE(plan.slot_bytes[plan.slot[i]], lives[i].bytes) << "seed " << seed;
      for (size_t j = 0; j < i; ++j) {
        const bool meet = lives[i].first <= lives[j].last && lives[j].first <= lives[i].last;
        ASSERT_FALSE(meet && plan.slot[i] == plan.slot[j])
            << "seed " << seed << ": " << i << " and " << j;
      }
    }
    EXPECT_LT(plan.total_bytes(), sum / 2) << "seed " << seed;
  }
}

}  // namespace
}  // namespace pteryx::graph
