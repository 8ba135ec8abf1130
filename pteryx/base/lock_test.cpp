// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/lock.h"

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <string>

#include <sys/resource.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "pteryx/base/testing/locked.h"

namespace pteryx {
namespace {

using testing::kLocksArePretended;
using testing::locked_kib;

constexpr size_t kBytes = 100'000;

// A file of that size, gone at the end of the test.
class Lock : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::temp_directory_path() /
             ("pteryx_lock_test_" + std::to_string(std::random_device()())))
                .string();
    std::ofstream(path_, std::ios::binary) << std::string(kBytes, 'x');
  }
  void TearDown() override { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST_F(Lock, LastsAsLongAsTheSource) {
  if (kLocksArePretended) return;  // other builds show it
  const int64_t before = locked_kib();
  {
    const auto source = map_source(path());
    ASSERT_TRUE(source.ok()) << source.status().message();
    EXPECT_EQ(locked_kib(), before);
    const Status locked = lock_in_memory(**source);
    ASSERT_TRUE(locked.ok()) << locked.message();
    EXPECT_GE(locked_kib(), before + static_cast<int64_t>(kBytes / 1024));
    EXPECT_EQ((*source)->view(0, kBytes)->back(), std::byte{'x'});
  }
  EXPECT_EQ(locked_kib(), before);
}

// Prints what is said where little may be locked, and ends. The limit does not hold for root, who
// becomes somebody else.
void lock_too_much(const std::string& path) {
  const auto source = map_source(path);
  constexpr uid_t kNobodyElse = 54321;
  const rlimit limit = {.rlim_cur = 8192, .rlim_max = 8192};
  const bool limited = source.ok() && setrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
                       (getuid() != 0 || setresuid(kNobodyElse, kNobodyElse, kNobodyElse) == 0);
  if (!limited) _exit(1);
  const Status locked = lock_in_memory(**source);
  std::fprintf(stderr, "%s: %s\n", name(locked.code()).data(),
               std::string(locked.message()).c_str());
  _exit(locked.code() == Code::kMemory ? 0 : 2);
}

TEST_F(Lock, SaysWhatIsAllowed) {
  if (kLocksArePretended) return;  // other builds show it
  EXPECT_EXIT(lock_too_much(path()), ::testing::ExitedWithCode(0),
              "cannot lock its 100000 bytes in memory: .+; this process may lock 8192 "
              "\\(RLIMIT_MEMLOCK\\): allow it more, such as with `ulimit -l 98`, or do not lock");
}

TEST_F(Lock, IsOfMappedFiles) {
  const auto file = open_source(path());
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(lock_in_memory(**file).code(), Code::kUnsupported);
  EXPECT_EQ(lock_in_memory(**file).message(),
            path() + ": only mapped files can be locked in memory");
}

}  // namespace
}  // namespace pteryx
