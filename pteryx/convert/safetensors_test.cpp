// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/safetensors.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "pteryx/convert/llama2c.h"
#include "pteryx/convert/testing/tiny_model.h"

namespace pteryx::convert {
namespace {

using testing::TempFolder;

std::string file_of(std::string_view header, size_t data) {
  const auto size = static_cast<uint64_t>(header.size());
  std::string out(reinterpret_cast<const char*>(&size), sizeof(size));
  out += header;
  for (size_t i = 0; i < data; ++i) out += static_cast<char>(i);
  return out;
}

Status parse(const std::string& file, Checkpoint& into) {
  return parse_safetensors(testing::source_of(file), into);
}
void expect_error(const std::string& file, std::string_view text) {
  Checkpoint c;
  const Status s = parse(file, c);
  EXPECT_EQ(s.code(), Code::kInvalidProgram) << text;
  EXPECT_NE(s.message().find(text), std::string_view::npos) << s.message();
}

TEST(Safetensors, ReadsTensorsAndRemembersOthers) {
  const std::string file = file_of(
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[8,12]},"s":{"dtype":"F16","shape":[],"data_offsets":[12,14]}})",
      14);
  Checkpoint c;
  const Status s = parse(file, c);
  ASSERT_TRUE(s.ok()) << s.message();
  ASSERT_NE(c.find("a"), nullptr);
  EXPECT_EQ(c.find("a")->dims, (Dims{1, 2}));
  EXPECT_EQ(c.find("s")->dims, Dims{});
  EXPECT_EQ(c.get("b", {4}).status().message(),
            "tensor 'b': F8_E4M3 is not supported (F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, "
            "Q4_K, Q5_K, Q6_K are)");
  EXPECT_EQ(c.get("a", {2, 2}).status().message(), "tensor 'a' shape: expected [2, 2], got [1, 2]");
  EXPECT_EQ(c.get("q", {2}).status().message(), "tensor 'q' [2] is missing");
}

TEST(Safetensors, RangesThatOverlapOrLeaveTheFile) {
  expect_error(file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                       R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                       12),
               "tensors 'a' and 'b' overlap");
  expect_error(file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})", 12),
               "tensor 'a' lies at [8, 16) of 12 bytes");
  expect_error(file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 12),
               "tensor 'a' lies at [8, 0) of 12 bytes");
  expect_error(file_of(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 12),
               "tensor 'a' F32 [3] has 8 bytes");
}

TEST(Safetensors, HeadersThatCannotBe) {
  expect_error("abc", "not a safetensors file");
  expect_error(std::string(8, '\xff') + "{}", "not a safetensors file");
  expect_error(file_of("[1]", 0), "the header is not a JSON object\n  while reading x");
  expect_error(file_of("{\"a\":", 0), "the header: not JSON at byte 6\n  while reading x");
  expect_error(file_of(std::string(100000, '['), 0),
               "the header: JSON is nested deeper than 64 levels at byte 65\n  while reading x");
  expect_error(file_of(R"({"a":3})", 0), "a: expected an object, got number");
  expect_error(file_of(R"({"a":{"dtype":3}})", 0), "a.dtype: expected a string, got number");
  expect_error(file_of(R"({"a":{"dtype":"F32","shape":["x"]}})", 0),
               "a.shape[0]: expected an integer, got string");
  expect_error(file_of(R"({"a":{"dtype":"F32","shape":[],"data_offsets":[4]}})", 4),
               "tensor 'a' has 1 data_offsets, expected 2");
  expect_error(file_of(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 12),
               "a.shape[0]: expected 0 or more, got -2");
  expect_error(
      file_of(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})", 8),
      "F32 [4294967296, 4294967296] has 8 bytes");
  expect_error(
      file_of(R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}})", 4),
      "has 9 dims");
}

TEST(Safetensors, TensorsAreThereOnce) {
  const std::string entry = R"(:{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  expect_error(file_of("{\"a\"" + entry + ",\"a\"" + entry + "}", 4),
               "the header: 'a' occurs twice\n  while reading x");
  // Over shards, readable or not.
  const std::string shard = file_of("{\"a\"" + entry + "}", 4);
  const std::string other = file_of(R"({"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}})", 1);
  for (const auto& [first, second] :
       {std::pair(&shard, &shard), std::pair(&shard, &other), std::pair(&other, &shard)}) {
    Checkpoint c;
    ASSERT_TRUE(parse_safetensors(testing::source_of(*first, "one"), c).ok());
    EXPECT_EQ(parse_safetensors(testing::source_of(*second, "two"), c).message(),
              "two: tensor 'a' is also in one\n  while reading two");
  }
}

TEST(Safetensors, EveryTruncationIsAnError) {
  const std::string file = testing::safetensors_of(testing::make_model(
      testing::tiny_shape("llama", RopeLayout::kHalves), testing::Grid::kSigned4));
  for (size_t n = 0; n < file.size(); n += 97) {
    Checkpoint c;
    EXPECT_FALSE(parse(file.substr(0, n), c).ok()) << n;
  }
}

TEST(Safetensors, IndexMayNameOnlyFilesOfItsFolder) {
  for (const char* shard : {"../x.safetensors", "/etc/passwd", "", ".."}) {
    const TempFolder folder;
    testing::write_file(folder / "model.safetensors.index.json",
                        std::string(R"({"weight_map":{"a":")") + shard + "\"}}");
    const auto r = open_safetensors(folder.path().string());
    ASSERT_FALSE(r.ok());
    EXPECT_NE(r.status().message().find("expected NAME.safetensors"), std::string_view::npos)
        << r.status().message();
  }
}

TEST(Safetensors, FolderWithoutWeights) {
  const TempFolder folder;
  const auto r = open_safetensors(folder.path().string());
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.status().code(), Code::kIo);
}

TEST(Llama2c, SizeMustBeExact) {
  ModelShape s = testing::tiny_shape("llama", RopeLayout::kPairs);
  s.head_size = 8;
  const std::string file = testing::llama2c_of(testing::make_model(s, testing::Grid::kSigned4));
  const auto parse_text = [](const std::string& f) { return parse_llama2c(testing::source_of(f)); };
  ASSERT_TRUE(parse_text(file).ok()) << parse_text(file).status().message();
  for (size_t n = 0; n < file.size(); n += 61)
    EXPECT_FALSE(parse_text(file.substr(0, n)).ok()) << n;
  EXPECT_FALSE(parse_text(file + "x").ok());
  EXPECT_NE(
      parse_text(std::string(100, '\x7f')).status().message().find("not a llama2.c checkpoint"),
      std::string_view::npos);
}

}  // namespace
}  // namespace pteryx::convert
