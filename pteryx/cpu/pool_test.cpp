// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/pool.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "pteryx/cpu/processors.h"

namespace pteryx::cpu {
namespace {

// Jobs of all sizes; those that were not done once each. Items write without synchronisation: that
// a job is over is seen by its caller.
int count_wrong(Pool& pool, size_t seed, int jobs) {
  constexpr size_t kMost = 300;
  std::atomic<int> wrong{0};
  std::vector<int> done(kMost);
  for (int job = 0; job < jobs; ++job) {
    const size_t count = (static_cast<size_t>(job) * 7 + seed) % kMost;
    for (int& d : done) d = 0;
    pool.run(count, [&](size_t item, size_t thread) {
      done[item] += 1;
      if (thread >= pool.threads()) ++wrong;
      if (item != 5 || job % 100 != 0) return;
      std::vector<int> inner(3);
      pool.run(inner.size(), [&](size_t i, size_t own) {
        inner[i] += 1;
        if (own >= pool.threads()) ++wrong;
      });
      for (const int d : inner) wrong += d == 1 ? 0 : 1;
    });
    for (size_t i = 0; i < kMost; ++i) wrong += done[i] == (i < count ? 1 : 0) ? 0 : 1;
    // Workers that have gone to sleep are woken up.
    if (job % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return wrong;
}

TEST(Pool, DoesEveryItemOnce) {
  for (const size_t threads : {2UL, 3UL, 4UL}) {
    Pool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    EXPECT_EQ(count_wrong(pool, 1, 1000), 0) << threads;
  }
}

TEST(Pool, LoopsInsideOfLoopsRunAlone) {
  Pool pool(3);
  std::atomic<int> others{0};
  pool.run(20, [&](size_t, size_t) {
    const std::thread::id caller = std::this_thread::get_id();
    pool.run(20, [&](size_t, size_t own) {
      others += own == 0 && std::this_thread::get_id() == caller ? 0 : 1;
    });
  });
  EXPECT_EQ(others, 0);
}

TEST(Pool, ServesTwoCallers) {
  Pool pool(4);
  int wrong = 0;
  std::thread other([&] { wrong = count_wrong(pool, 3, 2000); });
  EXPECT_EQ(count_wrong(pool, 1, 2000), 0);
  other.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Pool, OfOneIsTheCaller) {
  for (const size_t threads : {0UL, 1UL}) {
    Pool pool(threads);
    EXPECT_EQ(pool.threads(), 1U);
    const std::thread::id caller = std::this_thread::get_id();
    std::vector<size_t> items;
    pool.run(5, [&](size_t item, size_t thread) {
      EXPECT_EQ(thread, 0U);
      EXPECT_EQ(std::this_thread::get_id(), caller);
      items.push_back(item);
    });
    EXPECT_EQ(items, (std::vector<size_t>{0, 1, 2, 3, 4}));
  }
}

TEST(Pool, MoreThanOneThreadWorks) {
  Pool pool(2);
  // Each of two items waits for the other one to begin.
  std::atomic<int> begun{0};
  pool.run(2, [&](size_t, size_t) {
    ++begun;
    while (begun < 2) std::this_thread::yield();
  });
  EXPECT_EQ(begun, 2);
}

TEST(Pool, ComesAndGoes) {
  for (int i = 0; i < 50; ++i) {
    Pool unused(3);
    Pool brief(3);
    std::atomic<int> done{0};
    brief.run(10, [&](size_t, size_t) { ++done; });
    EXPECT_EQ(done, 10);
  }
}

TEST(Pool, IsSharedByThoseWhoAskForTheSame) {
  const std::shared_ptr<Pool> two = shared_pool(2);
  EXPECT_EQ(two->threads(), 2U);
  EXPECT_EQ(shared_pool(2), two);
  const std::shared_ptr<Pool> three = shared_pool(3);
  EXPECT_NE(three, two);
  EXPECT_EQ(three->threads(), 3U);
  EXPECT_EQ(shared_pool(0), shared_pool(usable_cores()));
  EXPECT_EQ(shared_pool(0)->threads(), usable_cores());
}

TEST(Pool, IsDroppedWithItsLastUser) {
  std::shared_ptr<Pool> pool = shared_pool(2);
  const std::weak_ptr<Pool> gone = pool;
  pool.reset();
  EXPECT_TRUE(gone.expired());
  pool = shared_pool(2);
  EXPECT_EQ(count_wrong(*pool, 2, 10), 0);
}

// Ends with 0 where a pool of many makes do with the three threads that this process may have
// besides its own. The limit does not hold for root, who becomes somebody else.
void run_short_of_threads() {
  constexpr size_t kFew = 4;
  const rlimit limit = {.rlim_cur = kFew, .rlim_max = kFew};
  constexpr uid_t kNobodyElse = 54321;
  const bool limited = setrlimit(RLIMIT_NPROC, &limit) == 0 &&
                       (getuid() != 0 || setresuid(kNobodyElse, kNobodyElse, kNobodyElse) == 0);
  if (!limited) _exit(1);
  Pool pool(64);
  if (pool.threads() > kFew) _exit(2);
  _exit(count_wrong(pool, 1, 200) == 0 ? 0 : 3);
}

TEST(PoolDeathTest, MakesDoWithFewerThreads) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_short_of_threads(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace pteryx::cpu
