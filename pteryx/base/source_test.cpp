// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/source.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "pteryx/base/same_file.h"
#include "pteryx/base/testing/late_source.h"

namespace pteryx {
namespace {

// A folder of its own, gone at the end of the test.
class SourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("pteryx_source_test_" + std::to_string(std::random_device()()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }

 private:
  std::filesystem::path folder_;
};

MutableBytes bytes_of(std::string& s) { return std::as_writable_bytes(std::span(s)); }

TEST_F(SourceTest, ReadsAnyPart) {
  std::string text(10007, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7);
  const auto file = open_source(write("data", text));
  ASSERT_TRUE(file.ok()) << file.status().message();
  const auto mapped = map_source(path("data"));
  ASSERT_TRUE(mapped.ok()) << mapped.status().message();
  const auto memory = std::make_shared<MemorySource>("memory", std::as_bytes(std::span(text)));
  const std::string longer = "abc" + text + "def";
  const auto around = std::make_shared<MemorySource>("around", std::as_bytes(std::span(longer)));
  const auto range = std::make_shared<RangeSource>(around, 3, text.size());
  for (const SourcePtr& s : {*file, *mapped, SourcePtr(memory), SourcePtr(range)}) {
    SCOPED_TRACE(s->name());
    EXPECT_EQ(s->size(), text.size());
    const auto view = s->view(5000, 17);
    EXPECT_EQ(view.has_value(), s != *file);
    if (view) {
      EXPECT_EQ(std::memcmp(view->data(), &text[5000], 17), 0);
    }
    EXPECT_FALSE(s->view(10007, 1));
    for (const auto& [offset, size] :
         {std::pair(0, 10007), std::pair(5000, 17), std::pair(10007, 0)}) {
      std::string got(static_cast<size_t>(size), 'x');
      const Status read = s->read_now(static_cast<uint64_t>(offset), bytes_of(got));
      ASSERT_TRUE(read.ok()) << read.message();
      EXPECT_EQ(got, text.substr(static_cast<size_t>(offset), static_cast<size_t>(size)));
    }
    std::string past(4, 'x');
    const Status read = s->read_now(10004, bytes_of(past));
    EXPECT_EQ(read.code(), Code::kIo);
    EXPECT_EQ(read.message(), s->name() +
                                  ": ended at byte 10007, expected 4 bytes at byte 10004: "
                                  "it was truncated");
    EXPECT_FALSE(s->read_now(~uint64_t{0}, bytes_of(past)).ok());
  }
}

TEST_F(SourceTest, LateBytesAreAnErrorForThoseWhoCannotWait) {
  const std::string text = "some bytes";
  const testing::LateSource late("far", std::as_bytes(std::span(text)), 1);
  std::string got(4, 'x');
  const Status read = late.read_now(5, bytes_of(got));
  EXPECT_EQ(read.code(), Code::kIo);
  EXPECT_EQ(read.message(), "far: 4 bytes at byte 5 are not there yet, and cannot be waited for");
  EXPECT_TRUE(late.read_now(5, bytes_of(got)).ok());
  EXPECT_EQ(got, "byte");
}

TEST_F(SourceTest, FetchedBytesLieOrAreCopied) {
  const std::string text(100, 'x');
  const Bytes bytes = std::as_bytes(std::span(text));
  const auto memory = std::make_shared<MemorySource>("memory", bytes);
  FetchedBytes lying(memory, 7, 20, 1);
  ASSERT_TRUE(*lying.advance());
  EXPECT_EQ(lying.bytes().data(), bytes.data() + 7);
  for (const uint64_t offset : {0U, 1U, 2U, 3U}) {
    FetchedBytes aligned(memory, offset, 20, 16);
    ASSERT_TRUE(*aligned.advance());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(aligned.bytes().data()) % 16, 0U);
    EXPECT_EQ(aligned.bytes().size(), 20U);
  }
  FetchedBytes late(std::make_shared<testing::LateSource>("far", bytes, 2), 7, 20, 1);
  EXPECT_FALSE(*late.advance());
  EXPECT_TRUE(late.bytes().empty());
  EXPECT_FALSE(*late.advance());
  EXPECT_TRUE(*late.advance());
  EXPECT_TRUE(*late.advance());
  EXPECT_EQ(late.bytes().size(), 20U);
}

TEST_F(SourceTest, FileThatShrinksIsAnError) {
  const auto file = open_source(write("data", std::string(100000, 'x')));
  ASSERT_TRUE(file.ok());
  std::filesystem::resize_file(path("data"), 60000);
  std::string got(50000, ' ');
  EXPECT_TRUE((*file)->read_now(0, bytes_of(got)).ok());
  const Status read = (*file)->read_now(50000, bytes_of(got));
  EXPECT_EQ(read.code(), Code::kIo);
  EXPECT_EQ(read.message(), path("data") +
                                ": ended at byte 60000, expected 50000 bytes at byte 50000: it was "
                                "truncated");
  EXPECT_NE((*file)->read_now(90000, bytes_of(got).first(8)).message().find("ended at byte 60000"),
            std::string_view::npos);
}

TEST_F(SourceTest, WhatIsNoFile) {
  const auto absent = open_source(path("absent"));
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.status().code(), Code::kIo);
  EXPECT_EQ(absent.status().message(), path("absent") + ": No such file or directory");
  EXPECT_EQ(open_source(path("")).status().message(), path("") + ": Is a directory");
  EXPECT_EQ(open_source("/dev/null").status().message(), "/dev/null: not a regular file");
}

TEST_F(SourceTest, ReadAllKeepsToItsLimit) {
  EXPECT_EQ(*read_all(write("data", "abc"), 3), "abc");
  EXPECT_EQ(*read_all(write("empty", ""), 0), "");
  const auto r = read_all(path("data"), 2);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.status().message(), path("data") + ": expected at most 2 bytes, got 3");
}

TEST_F(SourceTest, SameFileThroughLinks) {
  const std::string a = write("a", "x");
  const std::string b = write("b", "x");
  std::filesystem::create_symlink(a, path("symbolic"));
  std::filesystem::create_hard_link(a, path("hard"));
  EXPECT_TRUE(same_file(a, a));
  EXPECT_TRUE(same_file(a, path("./a")));
  EXPECT_TRUE(same_file(path("symbolic"), a));
  EXPECT_TRUE(same_file(path("hard"), path("symbolic")));
  EXPECT_FALSE(same_file(a, b));
  EXPECT_FALSE(same_file(a, path("absent")));
  EXPECT_FALSE(same_file(path("absent"), path("absent")));
}

}  // namespace
}  // namespace pteryx
