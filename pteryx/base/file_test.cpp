// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/file.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace pteryx {
namespace {

// A file in a folder of its own, gone at the end of the test.
class File : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("pteryx_file_test_" + std::to_string(std::random_device()()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

std::string text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST_F(File, HoldsTheBytesOfTheFile) {
  std::string text(10007, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7);
  auto file = MappedFile::open(write("data", text));
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(text_of((*file)->bytes()), text);
}

TEST_F(File, StartsAlignedTo64) {
  auto file = MappedFile::open(write("data", "abc"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>((*file)->bytes().data()) % 64, 0U);
}

TEST_F(File, EmptyFileIsAnEmptySpan) {
  auto file = MappedFile::open(write("empty", ""));
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE((*file)->bytes().empty());
}

TEST_F(File, OutlivesItsName) {
  const std::string path = write("data", "abc");
  auto file = MappedFile::open(path);
  ASSERT_TRUE(file.ok());
  std::filesystem::remove(path);
  EXPECT_EQ(text_of((*file)->bytes()), "abc");
}

TEST_F(File, MissingFileIsAnIoErrorWithPathAndReason) {
  const std::string path = (folder() / "absent.pte").string();
  const auto file = MappedFile::open(path);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().code(), Code::kIo);
  EXPECT_EQ(file.status().message(), path + ": No such file or directory");
}

TEST_F(File, FolderIsAnIoErrorWithPathAndReason) {
  const std::string path = folder().string();
  const auto file = MappedFile::open(path);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().code(), Code::kIo);
  EXPECT_EQ(file.status().message(), path + ": Is a directory");
}

TEST_F(File, NamesThatCannotBe) {
  const std::string name("/dev/null\0x", 11);
  EXPECT_EQ(MappedFile::open(name).status().message(),
            "/dev/null?x: a file name cannot hold a zero byte");
  EXPECT_EQ(MappedFile::open("").status().message(), "expected the name of a file, got none");
}

TEST_F(File, DeviceIsAnIoError) {
  if (!std::filesystem::exists("/dev/null")) return;
  const auto file = MappedFile::open("/dev/null");
  // A system without maps reads it as the empty file it looks like.
  if (file.ok()) {
    EXPECT_TRUE(file.value()->bytes().empty());
  } else {
    EXPECT_EQ(file.status().message(), "/dev/null: not a regular file");
  }
}

}  // namespace
}  // namespace pteryx
