// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/processors.h"

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace pteryx::cpu {
namespace {

// What Linux would show of itself, in a folder of its own that is gone at the end of the test.
class Shown : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() /
            ("pteryx_processors_test_" + std::to_string(std::random_device()()));
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void put(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void put_siblings(const std::vector<std::string>& of_each) const {
    for (size_t i = 0; i < of_each.size(); ++i) {
      put("sys/devices/system/cpu/cpu" + std::to_string(i) + "/topology/thread_siblings_list",
          of_each[i] + "\n");
    }
  }
  Processors read(const std::vector<size_t>& allowed) const {
    return read_processors(root_.string(), allowed);
  }

 private:
  std::filesystem::path root_;
};

TEST_F(Shown, HyperThreadsCountOnce) {
  put_siblings({"0,4", "1,5", "2,6", "3,7", "0,4", "1,5", "2,6", "3,7"});
  const Processors all = read({0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(all.allowed, 8U);
  EXPECT_EQ(all.cores, 4U);
  EXPECT_FALSE(all.quota.has_value());
  EXPECT_EQ(all.usable(), 4U);
}

TEST_F(Shown, CoresOutsideOfTheAffinityDoNotCount) {
  put_siblings({"0-1", "0-1", "2-3", "2-3", "4", "5"});
  EXPECT_EQ(read({1, 2, 3}).cores, 2U);
  EXPECT_EQ(read({0, 1}).cores, 1U);
  EXPECT_EQ(read({3, 4, 5}).usable(), 3U);
}

TEST_F(Shown, WithoutATopologyEveryProcessorIsACore) {
  EXPECT_EQ(read({0, 1, 2}).cores, 3U);
  EXPECT_EQ(read({2}).usable(), 1U);
}

TEST_F(Shown, QuotaOfTheGroupOrOneAround) {
  put("proc/self/cgroup", "0::/system.slice/job\n");
  put("sys/fs/cgroup/system.slice/job/cpu.max", "max 100000\n");
  EXPECT_FALSE(read({0, 1, 2, 3}).quota.has_value());
  put("sys/fs/cgroup/system.slice/cpu.max", "250000 100000\n");
  EXPECT_EQ(read({0, 1, 2, 3}).quota, 2.5);
  EXPECT_EQ(read({0, 1, 2, 3}).usable(), 3U);
  EXPECT_EQ(read({0, 1}).usable(), 2U);
  put("sys/fs/cgroup/system.slice/job/cpu.max", "50000 100000\n");
  EXPECT_EQ(read({0, 1, 2, 3}).quota, 0.5);
  EXPECT_EQ(read({0, 1, 2, 3}).usable(), 1U);
}

// Its own mount is the group, whatever it is called outside.
TEST_F(Shown, QuotaOfAContainer) {
  put("proc/self/cgroup", "0::/docker/1234\n");
  put("sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(read({0, 1, 2, 3}).usable(), 2U);
}

TEST_F(Shown, QuotaOfTheFirstVersion) {
  put("proc/self/cgroup", "5:memory:/a\n4:cpu,cpuacct:/a/b\n3:cpuset:/\n0::/\n");
  put("sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n");
  put("sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n");
  EXPECT_FALSE(read({0, 1, 2, 3}).quota.has_value());
  put("sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "150000\n");
  EXPECT_EQ(read({0, 1, 2, 3}).quota, 1.5);
  EXPECT_EQ(read({0, 1, 2, 3}).usable(), 2U);
}

TEST_F(Shown, FilesThatSayNothing) {
  put("proc/self/cgroup", "::\n\n0\n0::\n:cpu:\nnonsense");
  for (const char* text : {"", "max", "100000", "0 100000\n", "100000 0\n", "x y\n", "-5 100000\n",
                           "99999999999999999999999 100000\n"}) {
    put("sys/fs/cgroup/cpu.max", text);
    EXPECT_FALSE(read({0, 1}).quota.has_value()) << text;
    EXPECT_EQ(read({0, 1}).usable(), 2U) << text;
  }
}

TEST(Processors, SayWhy) {
  EXPECT_EQ((Processors{.online = 1, .allowed = 1, .cores = 1, .quota = {}}.reason()),
            "there is 1 core");
  EXPECT_EQ((Processors{.online = 8, .allowed = 8, .cores = 4, .quota = 4.0}.reason()),
            "one for each of 4 cores (8 hardware threads)");
  EXPECT_EQ((Processors{.online = 96, .allowed = 2, .cores = 2, .quota = {}}.reason()),
            "one for each of 2 cores; this process may run on 2 of 96 processors");
  EXPECT_EQ((Processors{.online = 8, .allowed = 8, .cores = 4, .quota = 1.5}.reason()),
            "the control group (cgroup) allows the time of 1.5 processors, of 4 cores");
  EXPECT_EQ((Processors{.online = 192, .allowed = 192, .cores = 192, .quota = 128.0}.reason()),
            "the control group (cgroup) allows the time of 128 processors, of 192 cores");
  EXPECT_EQ((Processors{.online = 16, .allowed = 16, .cores = 16, .quota = 12.5}.reason()),
            "the control group (cgroup) allows the time of 12.5 processors, of 16 cores");
  EXPECT_EQ((Processors{.online = 2, .allowed = 2, .cores = 2, .quota = 1.0}.reason()),
            "the control group (cgroup) allows the time of 1 processor, of 2 cores");
}

TEST(Processors, OfThisMachine) {
  const Processors p = processors();
  EXPECT_GE(p.cores, 1U);
  EXPECT_LE(p.cores, p.allowed);
  EXPECT_LE(p.allowed, p.online);
  EXPECT_GE(p.usable(), 1U);
  EXPECT_LE(p.usable(), p.cores);
  EXPECT_EQ(usable_cores(), p.usable());
}

}  // namespace
}  // namespace pteryx::cpu
