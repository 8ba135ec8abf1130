// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/native/sizes.h"

#include <chrono>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "pteryx/gpu/testing/compute.h"

namespace pteryx::gpu {
namespace {

namespace fs = std::filesystem;

class SizesFile : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* const info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(::testing::TempDir()) / info->name();
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  void write(std::string_view text) const {
    fs::create_directories(folder_);
    std::ofstream(folder_ / "gpus.json") << text;
  }
  std::optional<Sizes> kept(std::string_view adapter) const {
    return kept_sizes(folder_.string(), adapter);
  }

  fs::path folder_;
};

TEST(Sizes, MeasuredSoonAndLeaveNothingBehind) {
  Device& device = *shared_device();
  const Counters before = device.counters();
  const auto start = std::chrono::steady_clock::now();
  const Result<Sizes> sizes = measure_sizes(device);
  const double took =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ASSERT_TRUE(sizes.ok()) << sizes.status().message();
  EXPECT_LT(took, 60);
  EXPECT_GE(sizes->processors, 1U);
  EXPECT_LE(sizes->processors, 1024U);
  EXPECT_GE(sizes->invocations, 256U);
  EXPECT_EQ(sizes->invocations % 256, 0U);
  EXPECT_LE(sizes->invocations, 16384U);
  EXPECT_EQ(device.counters().buffers_alive, before.buffers_alive);
  EXPECT_EQ(device.counters().bind_groups_alive, before.bind_groups_alive);
}

TEST(Sizes, ByKindWhereNothingIsKnown) {
  EXPECT_EQ(usual_sizes(AdapterKind::kDiscrete, "NVIDIA H200"),
            (Sizes{.processors = 132, .invocations = 2048}));
  EXPECT_EQ(usual_sizes(AdapterKind::kUnknown, "?"), Sizes());
  const Sizes large = usual_sizes(AdapterKind::kDiscrete, "of next year");
  const Sizes small = usual_sizes(AdapterKind::kIntegrated, "of next year");
  EXPECT_GT(large.enough_invocations(), small.enough_invocations());
}

TEST_F(SizesFile, KeepsEachGpuAndForgetsOne) {
  const Sizes a{.processors = 7, .invocations = 512};
  const Sizes b{.processors = 9, .invocations = 768};
  EXPECT_FALSE(kept("a"));
  ASSERT_TRUE(keep_sizes(folder_.string(), "a", b).ok());
  const auto path = keep_sizes(folder_.string(), "a", a);
  ASSERT_TRUE(path.ok()) << path.status().message();
  EXPECT_EQ(*path, (folder_ / "gpus.json").string());
  ASSERT_TRUE(keep_sizes(folder_.string(), "b", b).ok());
  EXPECT_EQ(kept("a"), a);
  EXPECT_EQ(kept("b"), b);
  const auto forgotten = forget_sizes(folder_.string(), "a");
  ASSERT_TRUE(forgotten.ok());
  EXPECT_TRUE(*forgotten);
  EXPECT_FALSE(kept("a"));
  EXPECT_EQ(kept("b"), b);
  EXPECT_EQ(forget_sizes(folder_.string(), "a").value(), false);
}

TEST_F(SizesFile, IgnoresWhatMakesNoSense) {
  for (const std::string_view text :
       {"", "{", "[]", R"({"a": 1})", R"({"a": {}})", R"({"a": {"processors": 4}})",
        R"({"a": {"processors": 0, "invocations": 256}})",
        R"({"a": {"processors": -1, "invocations": 256}})",
        R"({"a": {"processors": 99999999, "invocations": 256}})",
        R"({"a": {"processors": "4", "invocations": 256}})",
        R"({"a": {"processors": 4, "invocations": 1e300}})"}) {
    write(text);
    EXPECT_FALSE(kept("a")) << text;
  }
  write(R"({"a": {"processors": 4, "invocations": 256}})");
  EXPECT_TRUE(kept("a"));
}

TEST_F(SizesFile, DevicesOpenWithThem) {
  const Sizes odd{.processors = 37, .invocations = 512};
  const auto plain = open_or_die();
  ASSERT_TRUE(keep_sizes(folder_.string(), plain->caps().adapter, odd).ok());
  EXPECT_EQ(open_or_die({.folder = folder_.string()})->caps().sizes, odd);
  const Sizes asked{.processors = 5, .invocations = 256};
  EXPECT_EQ(open_or_die({.folder = folder_.string(), .sizes = asked})->caps().sizes, asked);
  write("nonsense");
  EXPECT_EQ(open_or_die({.folder = folder_.string()})->caps().sizes, plain->caps().sizes);
}

TEST_F(SizesFile, SaysWhyItCannotBeKept) {
  const auto kept = keep_sizes("/proc/nonexistent/folder", "a", {});
  ASSERT_FALSE(kept.ok());
  EXPECT_EQ(kept.status().code(), Code::kIo);
  EXPECT_NE(kept.status().message().find("/proc/nonexistent/folder"), std::string::npos);
}

}  // namespace
}  // namespace pteryx::gpu
