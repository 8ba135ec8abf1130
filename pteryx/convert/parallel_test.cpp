// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/parallel.h"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/convert/convert.h"
#include "pteryx/convert/testing/tiny_model.h"
#include "pteryx/cpu/processors.h"

namespace pteryx::convert {
namespace {

TEST(Parallel, DoesEverythingOnce) {
  for (const uint32_t threads : {1U, 3U, 100U}) {
    std::vector<std::atomic<int>> times(50);
    const Status s = run_parallel(
        times.size(), threads,
        [&](size_t i, const Stopped&) {
          ++times[i];
          return Status();
        },
        nullptr);
    EXPECT_TRUE(s.ok()) << s.message();
    for (const auto& n : times) EXPECT_EQ(n, 1);
  }
  EXPECT_TRUE(run_parallel(0, 4, nullptr, nullptr).ok());
}

TEST(Parallel, EndsWithAnErrorAndBeginsNothingMore) {
  std::atomic<size_t> begun = 0;
  const Status s = run_parallel(
      1000, 2,
      [&](size_t i, const Stopped& stopped) -> Status {
        ++begun;
        if (i == 3) return io_error("piece 3");
        while (i > 3 && !stopped()) std::this_thread::yield();
        return i > 3 && stopped() ? Status(Code::kCancelled, "stopped") : Status();
      },
      nullptr);
  EXPECT_EQ(s.message(), "piece 3");
  EXPECT_LT(begun, 10U);
}

TEST(Parallel, IsCancelled) {
  for (const uint32_t threads : {1U, 2U}) {
    int asked = 0;
    const Status s = run_parallel(
        1000, threads,
        [&](size_t, const Stopped& stopped) -> Status {
          while (!stopped()) std::this_thread::yield();
          return {Code::kCancelled, "stopped"};
        },
        [&] { return ++asked < 3; });
    EXPECT_EQ(s.code(), Code::kCancelled);
    EXPECT_EQ(s.message(), "interrupted");
    EXPECT_EQ(asked, 3);
  }
}

TEST(Parallel, ThreadsFollowTheWish) {
  EXPECT_EQ(threads_for(7, 0), 7U);
  EXPECT_EQ(threads_for(0, 1000), 1U);
  EXPECT_EQ(threads_for(0, uint64_t{1} << 40), cpu::usable_cores());
}

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Parallel, AProgramIsTheSameWithAnyNumberOfThreads) {
  const testing::TempFolder folder;
  const std::string one = folder / "one.pte";
  const std::string four = folder / "four.pte";
  for (const Quantize q : {Quantize::kQ4, Quantize::kQ8}) {
    SynthOptions options = {.preset = "tiny", .convert = {.quantize = q, .threads = 1}};
    ASSERT_TRUE(synth(one, options).ok());
    options.convert.threads = 4;
    ASSERT_TRUE(synth(four, options).ok());
    EXPECT_TRUE(content(one) == content(four));
  }
  const std::string gguf = std::string(PTERYX_TEST_DATA) + "/fixtures/convert/llama.gguf";
  const auto a = convert(gguf, one, {.threads = 1});
  const auto b = convert(gguf, four, {.threads = 4});
  ASSERT_TRUE(a.ok()) << a.status().message();
  ASSERT_TRUE(b.ok()) << b.status().message();
  EXPECT_FALSE(content(one).empty());
  EXPECT_TRUE(content(one) == content(four));
  ASSERT_EQ(a->tensors.size(), b->tensors.size());
  for (size_t i = 0; i < a->tensors.size(); ++i) {
    EXPECT_EQ(a->tensors[i].target, b->tensors[i].target);
    EXPECT_EQ(a->tensors[i].error, b->tensors[i].error) << a->tensors[i].name;
  }
}

}  // namespace
}  // namespace pteryx::convert
