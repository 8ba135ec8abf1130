// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/gguf.h"

#include <cstring>

#include <gtest/gtest.h>

#include "pteryx/convert/testing/tiny_model.h"

namespace pteryx::convert {
namespace {

testing::GgufBuilder small() {
  testing::GgufBuilder b;
  b.text("general.name", "x");
  b.u32("n", 7);
  b.f32("f", 0.5F);
  b.flag("yes", true);
  b.texts("names", {"a", "", "ccc"});
  b.integers("ids", {-1, 2});
  b.tensor("w", 0, {2, 3}, testing::as_f32({1, 2, 3, 4, 5, 6}));
  b.tensor("v", 1, {2}, std::string("\x00\x3c\x00\x40", 4));
  return b;
}

void expect_error(const std::string& file, Code code, std::string_view text) {
  const auto r = GgufFile::parse(testing::source_of(file));
  ASSERT_FALSE(r.ok()) << text;
  EXPECT_EQ(r.status().code(), code) << r.status().message();
  EXPECT_NE(r.status().message().find(text), std::string_view::npos) << r.status().message();
}

template <typename T>
T value(const GgufFile& file, std::string_view key) {
  T out{};
  const Status s = file.require(key, out);
  EXPECT_TRUE(s.ok()) << s.message();
  return out;
}

TEST(Gguf, ReadsMetadataAndTensors) {
  for (const uint32_t version : {2U, 3U}) {
    const std::string file = small().finish(version);
    const auto r = GgufFile::parse(testing::source_of(file));
    ASSERT_TRUE(r.ok()) << r.status().message();
    EXPECT_EQ(value<std::string>(*r, "general.name"), "x");
    EXPECT_EQ(value<int64_t>(*r, "n"), 7);
    EXPECT_EQ(value<double>(*r, "n"), 7.0);
    EXPECT_EQ(value<double>(*r, "f"), 0.5);
    EXPECT_EQ(value<bool>(*r, "yes"), true);
    EXPECT_FALSE(r->has("absent"));
    EXPECT_EQ(value<std::vector<std::string>>(*r, "names"),
              (std::vector<std::string>{"a", "", "ccc"}));
    EXPECT_EQ(value<std::vector<double>>(*r, "ids"), (std::vector<double>{-1, 2}));
    const SourceTensor* w = r->tensors().find("w");
    ASSERT_NE(w, nullptr);
    EXPECT_EQ(w->dims, (Dims{2, 3}));
    std::vector<float> row(3);
    ASSERT_TRUE(w->read_row(1, row).ok());
    EXPECT_EQ(row, (std::vector<float>{4, 5, 6}));
    row.resize(2);
    ASSERT_TRUE(r->tensors().find("v")->read_row(0, row).ok());
    EXPECT_EQ(row, (std::vector<float>{1, 2}));
  }
}

TEST(Gguf, ValuesOfAnotherTypeAreNamed) {
  const std::string file = small().finish();
  const auto r = GgufFile::parse(testing::source_of(file));
  ASSERT_TRUE(r.ok()) << r.status().message();
  const auto message = [&](std::string_view key, auto out) {
    return std::string(r->read(key, out).message());
  };
  EXPECT_EQ(message("f", int64_t{}), "GGUF: 'f': expected an integer, got 0.5");
  EXPECT_EQ(message("yes", int64_t{}), "GGUF: 'yes': expected an integer, got true");
  EXPECT_EQ(message("general.name", double{}),
            "GGUF: 'general.name': expected a number, got the string 'x'");
  EXPECT_EQ(message("n", bool{}), "GGUF: 'n': expected true or false, got 7");
  EXPECT_EQ(message("n", std::string()), "GGUF: 'n': expected a string, got 7");
  EXPECT_EQ(message("ids", std::vector<std::string>()),
            "GGUF: 'ids': expected an array of strings, got an array of numbers");
  EXPECT_EQ(message("names", std::vector<double>()),
            "GGUF: 'names': expected an array of numbers, got an array of strings");
  int64_t n = 0;
  EXPECT_EQ(r->require("absent", n).message(), "GGUF: 'absent' is missing");
}

TEST(Gguf, EveryTruncationIsAnError) {
  const std::string file = small().finish();
  for (size_t n = 0; n < file.size(); ++n) {
    const std::string part = file.substr(0, n);
    const auto r = GgufFile::parse(testing::source_of(part));
    ASSERT_FALSE(r.ok()) << n;
    EXPECT_FALSE(r.status().message().empty());
  }
}

TEST(Gguf, OtherFilesAndVersions) {
  expect_error("GGML and more of it", Code::kInvalidProgram, "not a GGUF file");
  expect_error(small().finish(1), Code::kUnsupported, "GGUF version 1");
  expect_error(small().finish(0x03000000), Code::kUnsupported, "big-endian");
}

TEST(Gguf, CountsPastTheFile) {
  std::string file = small().finish();
  const uint64_t many = 1 << 16;
  std::memcpy(&file[8], &many, sizeof(many));
  expect_error(file, Code::kInvalidProgram, "65536 tensors do not fit in the");
  file = small().finish();
  std::memcpy(&file[16], &many, sizeof(many));
  expect_error(file, Code::kInvalidProgram, "65536 metadata entries do not fit in the");
  const uint64_t huge = ~uint64_t{0} / 2;  // more than any file has, were it as large
  std::memcpy(&file[8], &huge, sizeof(huge));
  expect_error(file, Code::kInvalidProgram, "tensors: expected at most 131072");
}

TEST(Gguf, TensorsThatCannotBe) {
  testing::GgufBuilder twice = small();
  twice.tensor("w", 0, {1}, testing::as_f32({1}));
  expect_error(twice.finish(), Code::kInvalidProgram, "tensor 'w' occurs twice");
  testing::GgufBuilder unreadable = small();
  unreadable.tensor("w", 10, {256}, std::string(84, '\0'));
  expect_error(unreadable.finish(), Code::kInvalidProgram, "tensor 'w' occurs twice");
  testing::GgufBuilder odd;
  odd.tensor("q", 2, {33}, std::string(64, '\0'));
  expect_error(odd.finish(), Code::kInvalidProgram, "tensor 'q' of Q4_0 cannot have dims [33]");
  testing::GgufBuilder far;
  far.tensor("q", 0, {1 << 20}, "abcd");
  expect_error(far.finish(), Code::kInvalidProgram,
               "tensor 'q' has 4194304 bytes at byte 0 of the data, which has 4 bytes");
  testing::GgufBuilder wide;
  wide.tensor("q", 0, {1, 1, 1, 1, 1}, testing::as_f32({1}));
  expect_error(wide.finish(), Code::kInvalidProgram, "tensor 'q' has 5 dims");
}

TEST(Gguf, MetadataThatCannotBe) {
  testing::GgufBuilder twice = small();
  twice.u32("n", 8);
  expect_error(twice.finish(), Code::kInvalidProgram, "metadata 'n' occurs twice");
  testing::GgufBuilder alignment;
  alignment.u32("general.alignment", 0);
  expect_error(alignment.finish(), Code::kInvalidProgram,
               "'general.alignment': expected 1 to 1048576, got 0");
}

TEST(Gguf, FormatsThatAreNotReadAreNamedWhenAskedFor) {
  testing::GgufBuilder b;
  b.tensor("q", 10, {256}, std::string(84, '\0'));
  const std::string file = b.finish();
  const auto r = GgufFile::parse(testing::source_of(file));
  ASSERT_TRUE(r.ok()) << r.status().message();
  const auto t = r->tensors().get("q", {256});
  ASSERT_FALSE(t.ok());
  EXPECT_EQ(t.status().message(),
            "tensor 'q': ggml type 10 is not supported (F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, "
            "Q5_1, Q4_K, Q5_K, Q6_K are)");
}

}  // namespace
}  // namespace pteryx::convert
