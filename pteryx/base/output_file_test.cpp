// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/output_file.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#ifndef _WIN32
#include <sys/resource.h>
#endif

#include <gtest/gtest.h>

namespace pteryx {
namespace {

namespace fs = std::filesystem;

class Output : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("pteryx_output_test_" + std::to_string(std::random_device()()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  size_t files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

 private:
  fs::path folder_;
};

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(Output, AppearsWhenItIsComplete) {
  auto file = OutputFile::create(path("a"));
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_TRUE(file->write("abc").ok());
  EXPECT_FALSE(fs::exists(path("a")));
  EXPECT_TRUE(file->seek(6).ok());
  EXPECT_TRUE(file->write("def").ok());
  EXPECT_TRUE(file->commit().ok());
  EXPECT_EQ(content(path("a")), std::string("abc\0\0\0def", 9));
  EXPECT_EQ(files(), 1U);
}

TEST_F(Output, TakesPartsInAnyOrder) {
  auto file = OutputFile::create(path("a"));
  ASSERT_TRUE(file.ok()) << file.status().message();
  const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      EXPECT_TRUE(file->write_at(30 - 6 * i, bytes("part " + std::to_string(i))).ok());
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_TRUE(file->seek(0).ok());
  EXPECT_TRUE(file->write("the head: ").ok());
  EXPECT_TRUE(file->commit().ok());
  EXPECT_EQ(content(path("a")), std::string("the head: \0\0part 3part 2part 1part 0", 36));
}

TEST_F(Output, LeavesNothingBehindUnlessCommitted) {
  ASSERT_TRUE(write_file(path("a"), "old").ok());
  {
    auto file = OutputFile::create(path("a"));
    ASSERT_TRUE(file.ok());
    EXPECT_TRUE(file->write("new").ok());
  }
  EXPECT_EQ(content(path("a")), "old");
  EXPECT_EQ(files(), 1U);
}

TEST_F(Output, ReplacesAFileAtOnce) {
  ASSERT_TRUE(write_file(path("a"), "old and long").ok());
  ASSERT_TRUE(write_file(path("a"), "new").ok());
  EXPECT_EQ(content(path("a")), "new");
  EXPECT_EQ(files(), 1U);
}

TEST_F(Output, WritesThroughALink) {
  ASSERT_TRUE(write_file(path("a"), "old").ok());
  fs::create_symlink(path("a"), path("link"));
  ASSERT_TRUE(write_file(path("link"), "new").ok());
  EXPECT_EQ(content(path("a")), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
}

TEST_F(Output, RefusesWhatIsNoFile) {
  fs::create_directory(path("folder"));
  EXPECT_EQ(write_file(path("folder"), "x").message(),
            "cannot write " + path("folder") + ": Is a directory");
  if (!fs::exists("/dev/null")) return;
  fs::create_symlink("/dev/null", path("null"));
  EXPECT_EQ(write_file(path("null"), "x").message(),
            "cannot write " + path("null") + ": not a regular file");
}

#ifndef _WIN32
// A limit on the size of files stands for a disk that is full.
TEST_F(Output, AFullDiskLeavesTheOldFile) {
  ASSERT_TRUE(write_file(path("a"), "the old text").ok());
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {.rlim_cur = 8, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status s = write_file(path("a"), "a new and longer text");
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(s.message(), "cannot write " + path("a") + ": File too large");
  EXPECT_EQ(content(path("a")), "the old text");
  EXPECT_EQ(files(), 1U);
}
#endif

TEST_F(Output, NamesAFolderThatIsNotThere) {
  const Status s = write_file(path("none/a"), "x");
  EXPECT_EQ(s.code(), Code::kIo);
  EXPECT_EQ(s.message(), "cannot write " + path("none/a") + ": No such file or directory");
}

}  // namespace
}  // namespace pteryx
