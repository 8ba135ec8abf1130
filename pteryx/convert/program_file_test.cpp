// The programs of paths, and the cache they are kept in. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/program_file.h"

#include <chrono>
#include <filesystem>
#include <iterator>
#include <optional>

#ifndef _WIN32
#include <unistd.h>
#endif

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pteryx/convert/convert.h"
#include "pteryx/convert/testing/tiny_model.h"

namespace pteryx::convert {
namespace {

namespace fs = std::filesystem;
using testing::read_file;
using testing::TempFolder;
using testing::write_file;
using Notes = std::vector<std::string>;

std::string fixture(const std::string& name) {
  return std::string(PTERYX_TEST_DATA) + "/fixtures/" + name;
}

size_t files(const std::string& folder) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

class ProgramFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(scratch_);
    fs::copy(fixture("convert/llama.gguf"), model_);
  }

  // Another model in the place of the one that is there.
  void change_model() const {
    std::string bytes = read_file(model_);
    bytes[bytes.size() - 3] ^= 1;
    write_file(model_, bytes);
  }
  ProgramFile find(const std::string& path) const {
    auto found = ProgramFile::find(path, options_);
    EXPECT_TRUE(found.ok()) << found.status().message();
    return std::move(found).value();
  }
  ProgramFile find() const { return find(model_); }
  ProgramFile make() const {
    ProgramFile file = find();
    const Status s = file.make();
    EXPECT_TRUE(s.ok()) << s.message();
    return file;
  }

  const TempFolder folder_;
  const std::string model_ = folder_ / "model.gguf";
  const std::string cache_ = folder_ / "cache";
  const std::string scratch_ = folder_ / "scratch";
  CacheOptions options_ = {.folder = cache_, .temporary = scratch_};
};

TEST_F(ProgramFiles, AProgramIsItself) {
  const std::string program = folder_ / "add";
  fs::copy(fixture("ops/add.pte"), program);
  const std::string bytes = read_file(program);
  ProgramFile file = find(program);
  EXPECT_TRUE(file.ready());
  EXPECT_FALSE(file.was_kept());
  EXPECT_EQ(file.path(), program);
  EXPECT_TRUE(file.make().ok());
  const Status s = file.repeat();
  EXPECT_EQ(s.code(), Code::kInvalidArgument);
  EXPECT_EQ(s.message(), program + ": expected a kept conversion, got one that was not");
  EXPECT_EQ(read_file(program), bytes);
  EXPECT_FALSE(fs::exists(cache_));
}

TEST_F(ProgramFiles, AModelIsConvertedOnce) {
  ProgramFile file = find();
  EXPECT_FALSE(file.ready());
  EXPECT_TRUE(file.keeps());
  std::vector<std::string> said;
  uint64_t last = 0;
  uint64_t total = 0;
  const Status s = file.make([&](std::string_view what, uint64_t done, uint64_t all) {
    if (said.empty() || said.back() != what) said.emplace_back(what);
    last = done;
    total = all;
    return true;
  });
  ASSERT_TRUE(s.ok()) << s.message();
  EXPECT_EQ(said, std::vector{"converting " + model_});
  EXPECT_GT(last, 0U);
  EXPECT_LE(last, total);
  EXPECT_TRUE(file.ready());
  EXPECT_FALSE(file.was_kept());
  EXPECT_EQ(fs::path(file.path()).parent_path(), cache_);
  const std::string direct = folder_ / "direct.pte";
  ASSERT_TRUE(convert(model_, direct, {}).ok());
  EXPECT_EQ(read_file(file.path()), read_file(direct));

  fs::rename(model_, folder_ / "a blob");
  ProgramFile again = find(folder_ / "a blob");
  EXPECT_TRUE(again.ready());
  EXPECT_TRUE(again.was_kept());
  EXPECT_EQ(again.path(), file.path());
  EXPECT_TRUE(again.make([](auto...) { return false; }).ok()) << "there is nothing to cancel";
  EXPECT_EQ(again.take_notes(), Notes());
}

TEST_F(ProgramFiles, OtherContentIsAnotherProgram) {
  const std::string first = make().path();
  change_model();
  EXPECT_FALSE(find().ready());
  EXPECT_NE(make().path(), first);
  EXPECT_TRUE(fs::exists(first));
}

TEST_F(ProgramFiles, WhatAnotherMadeMeanwhileIsTaken) {
  ProgramFile late = find();
  make();
  EXPECT_FALSE(late.ready());
  EXPECT_TRUE(late.make([](auto...) { return false; }).ok()) << "there is nothing to convert";
  EXPECT_TRUE(late.was_kept());
  EXPECT_EQ(late.take_notes(), Notes());

  write_file(late.path(), "x");
  ProgramFile damaged = find();
  make();
  EXPECT_TRUE(damaged.make([](auto...) { return false; }).ok()) << "there is nothing to repair";
  EXPECT_EQ(damaged.take_notes(), Notes());
}

TEST_F(ProgramFiles, DamageIsFoundAndMadeGood) {
  const std::string program = make().path();
  const std::string whole = read_file(program);
  std::string flipped = whole;
  flipped[whole.size() / 2] ^= 1;
  for (const std::string& damaged : {std::string(), whole.substr(0, 1000), flipped}) {
    write_file(program, damaged);
    ProgramFile file = find();
    EXPECT_FALSE(file.ready());
    ASSERT_TRUE(file.make().ok());
    EXPECT_FALSE(file.was_kept());
    EXPECT_EQ(file.take_notes(),
              Notes{"the kept conversion of " + model_ + " is damaged: converting again"});
    EXPECT_EQ(file.take_notes(), Notes()) << "each is told once";
    EXPECT_EQ(read_file(program), whole);
  }
  fs::remove(fs::path(program).replace_extension(".json"));
  EXPECT_FALSE(find().ready());
}

TEST_F(ProgramFiles, WhatWasKeptCanBeMadeAnew) {
  make();
  ProgramFile kept = find();
  bool converted = false;
  ASSERT_TRUE(kept.repeat([&](auto...) { return converted = true; }).ok());
  EXPECT_TRUE(converted);
  EXPECT_TRUE(kept.ready());
  EXPECT_FALSE(kept.was_kept());
  EXPECT_EQ(kept.take_notes(),
            Notes{"the kept conversion of " + model_ + " cannot be used: converting again"});
  EXPECT_TRUE(find().was_kept());
}

TEST_F(ProgramFiles, CancelledLeavesNothing) {
  uint64_t calls = 0;
  ASSERT_TRUE(find().make([&](auto...) { return ++calls > 0; }).ok());
  const Result<Cache> cache = Cache::open(options_);
  ASSERT_TRUE(cache.ok());
  ASSERT_TRUE(cache->clear().ok());
  ASSERT_GT(calls, 2U);
  for (const uint64_t stop : {uint64_t{0}, calls / 2, calls - 1}) {
    for (const std::string& kept : {cache_, std::string()}) {
      options_.folder = kept;
      ProgramFile file = find();
      uint64_t call = 0;
      const Status s = file.make([&](auto...) { return call++ != stop; });
      EXPECT_EQ(s.code(), Code::kCancelled) << s.message();
      EXPECT_FALSE(file.ready());
      EXPECT_EQ(files(cache_), 0U);
      EXPECT_TRUE(file.make().ok()) << "it may be tried again";
      EXPECT_TRUE(fs::exists(file.path()));
      ASSERT_TRUE(cache->clear().ok());
    }
  }
  EXPECT_EQ(files(scratch_), 0U);
}

TEST_F(ProgramFiles, ARefusedSourceLeavesNothing) {
  write_file(model_, read_file(model_).substr(0, 2000));
  ProgramFile file = find();
  EXPECT_EQ(file.make().code(), Code::kInvalidProgram);
  EXPECT_EQ(files(cache_), 0U);
}

TEST_F(ProgramFiles, AnEntryIsWholeOrNotThere) {
  const std::string program = make().path();
  const fs::path sidecar = fs::path(program).replace_extension(".json");
  fs::remove(sidecar);
  fs::create_directories(sidecar / "in the way");
  const Status s = find().make();
  EXPECT_EQ(s.code(), Code::kIo);
  EXPECT_EQ(s.message(), "cannot write " + sidecar.string() + ": Is a directory");
  EXPECT_FALSE(fs::exists(program));
}

TEST_F(ProgramFiles, WithoutACacheTheProgramGoesWithTheObject) {
  options_.folder.clear();
  std::string program;
  {
    ProgramFile made = make();
    EXPECT_FALSE(made.keeps());
    EXPECT_EQ(made.take_notes(), Notes());
    const ProgramFile file = std::move(made);
    program = file.path();
    EXPECT_TRUE(program.starts_with(scratch_)) << program;
    EXPECT_GT(fs::file_size(program), 0U);
    EXPECT_EQ(fs::status(fs::path(program).parent_path()).permissions(), fs::perms::owner_all);
  }
  EXPECT_FALSE(fs::exists(program));
  EXPECT_EQ(files(scratch_), 0U);
}

TEST_F(ProgramFiles, ACacheThatCannotBeUsedIsANote) {
  write_file(cache_, "x");
  ProgramFile file = find();
  EXPECT_FALSE(file.keeps());
  EXPECT_EQ(file.take_notes(),
            Notes{"no cache (" + cache_ + ": Not a directory): the conversion is not kept"});
  EXPECT_TRUE(file.make().ok());
  options_.temporary = folder_ / "none";
  Status s = find().make();
  EXPECT_EQ(s.code(), Code::kIo);
  EXPECT_EQ(s.message(), options_.temporary +
                             ": No such file or directory\n  while making a folder for the "
                             "conversion of " +
                             model_);
  options_.temporary.clear();
  s = find().make();
  EXPECT_EQ(s.code(), Code::kIo);
  EXPECT_EQ(s.message(), "there is no folder for the conversion of " + model_);
}

TEST_F(ProgramFiles, WhatIsNoModelIsRefused) {
  fs::create_directory(folder_ / "folder");
  write_file(folder_ / "empty", "");
  write_file(folder_ / "text", "hello");
  for (const auto& [name, kind] :
       {std::pair("folder", "a folder without config.json"), std::pair("empty", "an empty file"),
        std::pair("text", "an unknown kind of file")}) {
    const auto found = ProgramFile::find(folder_ / name, options_);
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.status().code(), Code::kInvalidProgram);
    EXPECT_EQ(found.status().message(), folder_ / name + " is " + kind +
                                            ": expected a .pte program, a GGUF file, a Hugging "
                                            "Face folder or a llama2.c checkpoint");
  }
  EXPECT_EQ(ProgramFile::find(folder_ / "none", options_).status().code(), Code::kIo);
  EXPECT_FALSE(fs::exists(cache_));
}

TEST_F(ProgramFiles, TheOneUsedLongestAgoGoes) {
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  const std::string first = make().path();
  change_model();
  const std::string second = make().path();
  for (const std::string& program : {first, second}) fs::last_write_time(program, long_ago);
  EXPECT_TRUE(find().ready());  // the second is used now
  const auto cache = Cache::open(options_);
  ASSERT_TRUE(cache.ok());
  const std::vector<Cache::Entry> entries = cache->list();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].path, second);
  EXPECT_EQ(entries[0].source, model_);
  EXPECT_EQ(entries[0].bytes, fs::file_size(second));
  EXPECT_GT(entries[0].used - entries[1].used, 3000);

  const std::string folder = fixture("convert/qwen2");
  ASSERT_TRUE(find(folder).make().ok());
  EXPECT_EQ(cache->list().size(), 3U);
  ProgramFile third = find(folder);
  options_.limit = fs::file_size(third.path()) + entries[0].bytes;
  ASSERT_TRUE(find(folder).repeat().ok());
  EXPECT_TRUE(fs::exists(third.path()));
  EXPECT_TRUE(fs::exists(second));
  EXPECT_FALSE(fs::exists(first));

  options_.limit = 0;  // the newest stays, even if it is too large alone
  ASSERT_TRUE(find().repeat().ok());
  EXPECT_TRUE(find().ready());
  EXPECT_EQ(cache->list().size(), 1U);
}

#ifndef _WIN32
TEST_F(ProgramFiles, SomebodyElsesFolderIsNotUsed) {
  // Only root can give a folder away; anybody else has the root folder, which is root's.
  const bool root = ::geteuid() == 0;
  const std::string theirs = root ? cache_ : "/";
  if (root) {
    fs::create_directory(cache_);
    ASSERT_EQ(::chown(cache_.c_str(), 12345, 12345), 0);
  }
  options_.folder = theirs;
  ProgramFile file = find();
  EXPECT_FALSE(file.keeps());
  EXPECT_EQ(file.take_notes(),
            Notes{fmt::format(
                "no cache ({}: belongs to user {}, not to user {}): the conversion is not kept",
                theirs, root ? 12345 : 0, ::geteuid())});
  ASSERT_TRUE(file.make().ok());
  EXPECT_TRUE(file.path().starts_with(scratch_));
  EXPECT_TRUE(!root || files(cache_) == 0);
}

TEST_F(ProgramFiles, OneConversionAtATime) {
  auto held = PrivateFolder::open(cache_);
  ASSERT_TRUE(held.ok());
  std::optional<PrivateFolder> other(std::move(held).value());
  ASSERT_TRUE(*other->lock());
  EXPECT_EQ(find().make([](auto...) { return false; }).code(), Code::kCancelled);
  std::vector<std::string> said;
  const Status s = find().make([&](std::string_view what, uint64_t, uint64_t) {
    if (said.empty() || said.back() != what) said.emplace_back(what);
    if (said.size() == 1) other.reset();
    return true;
  });
  EXPECT_TRUE(s.ok()) << s.message();
  EXPECT_EQ(said, (std::vector<std::string>{std::string(kWaiting), "converting " + model_}));
  EXPECT_TRUE(*PrivateFolder::open(cache_)->lock()) << "the lock ends with the conversion";
}
#endif

}  // namespace
}  // namespace pteryx::convert
