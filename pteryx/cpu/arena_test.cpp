// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/arena.h"

#include <cstdint>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "pteryx/base/testing/allocations.h"
#include "pteryx/cpu/pool.h"

namespace pteryx::cpu {
namespace {

bool is_aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % Arena::kAlignment == 0; }

// What a call may take: pieces that fit no block together with others.
void take_some(Arena& arena, size_t times) {
  for (size_t i = 0; i < times; ++i) {
    std::byte* const bytes = arena.take(1000 * i + 1);
    EXPECT_TRUE(is_aligned(bytes));
    float* const floats = arena.take_array<float>(7);
    EXPECT_TRUE(is_aligned(floats));
    if (arena.counts_only()) continue;
    std::memset(bytes, 1, 1000 * i + 1);
    floats[6] = 1;
  }
}

TEST(Arena, WhatIsTakenStands) {
  Arena arena;
  auto* const first = arena.take_array<int>(10);
  for (int i = 0; i < 10; ++i) first[i] = i;
  take_some(arena, 20);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(first[i], i);
}

TEST(Arena, NothingCanBeTaken) {
  Arena arena;
  arena.reset();
  EXPECT_TRUE(is_aligned(arena.take(0)));
  take_some(arena, 1);
}

TEST(Arena, AllocatesNothingInTheSteadyState) {
  Arena arena;
  take_some(arena, 20);
  arena.reset();  // one block for all of it from here on
  pteryx::testing::AllocationCount count;
  for (size_t run = 0; run < 3; ++run) {
    take_some(arena, 20 - run);
    arena.reset();
  }
  EXPECT_EQ(count.stop(), 0);
}

TEST(Arena, LargerCallsAllocateOnce) {
  Arena arena;
  take_some(arena, 3);
  arena.reset();
  take_some(arena, 8);
  arena.reset();
  pteryx::testing::AllocationCount count;
  take_some(arena, 8);
  arena.reset();
  EXPECT_EQ(count.stop(), 0);
}

TEST(Arena, CountsWhatCallsTake) {
  Arena counts{Arena::CountOnly{}};
  take_some(counts, 1);
  const size_t bytes = counts.taken();
  EXPECT_GT(bytes, 0U);
  Arena arena;
  ASSERT_TRUE(arena.reserve(bytes));
  pteryx::testing::AllocationCount count;
  take_some(arena, 1);
  EXPECT_EQ(count.stop(), 0);
  EXPECT_EQ(arena.taken(), bytes);
  arena.reset();
  EXPECT_EQ(arena.taken(), 0U);
  EXPECT_FALSE(Arena().reserve(std::numeric_limits<size_t>::max() / 2));
}

TEST(Arena, SaysHowMuchMemoryItHas) {
  Arena arena;
  EXPECT_EQ(arena.size(), 0U);
  ASSERT_TRUE(arena.reserve(1024));
  EXPECT_EQ(arena.size(), 1024U);
  arena.take(1000);
  EXPECT_EQ(arena.size(), 1024U);
  arena.take(1000);
  EXPECT_GT(arena.size(), 1024U);
}

// A product that does not fit is no small one, and a sum neither.
TEST(Arena, WhatIsTooLargeCountsAsMoreThanThereIs) {
  constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();
  const auto expect_too_large = [](const auto& take) {
    Arena counts{Arena::CountOnly{}};
    take(counts);
    EXPECT_EQ(counts.taken(), Arena::kMost);
    EXPECT_FALSE(Arena().reserve(counts.taken()));
    take_some(counts, 3);
    EXPECT_EQ(counts.taken(), Arena::kMost);
  };
  expect_too_large([](Arena& a) { a.take(kAll); });
  expect_too_large([](Arena& a) { a.take(std::numeric_limits<size_t>::max() - 3); });
  expect_too_large([](Arena& a) { a.take_array<float>(kAll / 4 + 2); });
  expect_too_large([](Arena& a) { a.take_array<float>(size_t{1} << 40U, size_t{1} << 40U); });
  expect_too_large([](Arena& a) { a.take_array<float>(1U << 20U, kAll / 2, 1U << 30U); });
  expect_too_large([](Arena& a) {
    for (int i = 0; i < 3; ++i) a.take(Arena::kMost / 2);
  });
  EXPECT_FALSE(Arena().reserve(kAll));
  Arena counts{Arena::CountOnly{}};
  counts.take_array<float>(3, 5U, 7U);
  EXPECT_EQ(counts.taken(), 448U);
}

TEST(Arena, PoolsRunWithoutAllocating) {
  Pool pool(3);
  pool.run(10, [](size_t, size_t) {});
  pteryx::testing::AllocationCount count;
  for (int i = 0; i < 100; ++i) pool.run(10, [](size_t, size_t) {});
  EXPECT_EQ(count.stop(), 0);
}

}  // namespace
}  // namespace pteryx::cpu
