// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/private_folder.h"

#include <filesystem>
#include <fstream>
#include <random>

#include <gtest/gtest.h>

namespace pteryx {
namespace {

namespace fs = std::filesystem;

class Folders : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  const fs::path folder_ =
      fs::temp_directory_path() / ("pteryx_folder_test_" + std::to_string(std::random_device()()));
};

TEST_F(Folders, AreMadeAndClosedToOthers) {
  const fs::path path = folder_ / "a" / "b";
  for (const auto before : {fs::perms::none, fs::perms::all}) {
    if (before == fs::perms::all) fs::permissions(path, before);
    auto folder = PrivateFolder::open(path.string());
    ASSERT_TRUE(folder.ok()) << folder.status().message();
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
    const auto locked = folder->lock();
    ASSERT_TRUE(locked.ok()) << locked.status().message();
    EXPECT_TRUE(*locked);
  }
}

TEST_F(Folders, AFileInThePlaceIsRefused) {
  const std::string path = (folder_ / "file").string();
  std::ofstream(path) << "x";
  const auto folder = PrivateFolder::open(path);
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.status().code(), Code::kIo);
  EXPECT_EQ(folder.status().message(), path + ": Not a directory");
  EXPECT_EQ(PrivateFolder::open("").status().code(), Code::kIo);
}

TEST_F(Folders, TemporaryOnesAreNewAndClosedToOthers) {
  const auto a = make_temporary_folder(folder_.string());
  const auto b = make_temporary_folder(folder_.string());
  ASSERT_TRUE(a.ok()) << a.status().message();
  ASSERT_TRUE(b.ok()) << b.status().message();
  EXPECT_NE(*a, *b);
  for (const std::string& path : {*a, *b}) {
    EXPECT_EQ(fs::path(path).parent_path(), folder_);
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
  }
  const std::string none = (folder_ / "none").string();
  EXPECT_EQ(make_temporary_folder(none).status().message(), none + ": No such file or directory");
}

}  // namespace
}  // namespace pteryx
