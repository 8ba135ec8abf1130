// .npy files: what is read, what is refused with which words, and that what is written is read.
// SPDX-License-Identifier: BSD-3-Clause
#include "npy.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace pteryx::cli {
namespace {

std::string file_text(std::string_view header, size_t data_bytes, int version = 1) {
  std::string text = "\x93NUMPY";
  text += static_cast<char>(version);
  text += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    text += static_cast<char>((header.size() >> (8 * i)) & 0xFF);
  text += header;
  for (size_t i = 0; i < data_bytes; ++i) text += static_cast<char>(i);
  return text;
}

std::string header(std::string_view descr, std::string_view order, std::string_view shape) {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}\n", descr, order,
                     shape);
}

// In memory of exactly its size, where a sanitizer sees the first byte past it.
Result<Array> parse(const std::string& text) {
  std::vector<std::byte> bytes(text.size());
  std::transform(text.begin(), text.end(), bytes.begin(), [](char c) { return std::byte(c); });
  return parse_npy(bytes);
}

std::string refusal(const std::string& text) {
  const auto a = parse(text);
  if (a.ok()) return "accepted";
  EXPECT_EQ(a.status().code(), Code::kInvalidProgram);
  return std::string(a.status().message());
}

TEST(Npy, ReadsEveryTypeItKnows) {
  const struct {
    std::string_view descr;
    DType dtype;
  } rows[] = {{"|b1", DType::kBool}, {"|u1", DType::kU8},  {"|i1", DType::kI8},
              {"<i2", DType::kI16},  {"<u2", DType::kU16}, {"<i4", DType::kI32},
              {"<u4", DType::kU32},  {"<i8", DType::kI64}, {"<u8", DType::kU64},
              {"<f2", DType::kF16},  {"<f4", DType::kF32}, {"<f8", DType::kF64},
              {"=f4", DType::kF32},  {">i1", DType::kI8}};
  for (const auto& row : rows) {
    const size_t bytes = 6 * size_bytes(row.dtype);
    const auto a = parse(file_text(header(row.descr, "False", "(2, 3)"), bytes));
    ASSERT_TRUE(a.ok()) << row.descr << ": " << a.status().message();
    EXPECT_EQ(a->dtype, row.dtype);
    EXPECT_EQ(a->dims, (Dims{2, 3}));
    EXPECT_TRUE(a->strides.empty());
    ASSERT_EQ(a->data.size(), bytes);
    EXPECT_EQ(static_cast<size_t>(a->data[bytes - 1]), bytes - 1);
  }
}

TEST(Npy, ReadsShapesAsPythonWritesThem) {
  const struct {
    std::string_view text;
    Dims dims;
  } rows[] = {{"()", {}},
              {"(3,)", {3}},
              {"(1, 2, 3)", {1, 2, 3}},
              {"(0, 5)", {0, 5}},
              {"(3L, 2L)", {3, 2}}};
  for (const auto& row : rows) {
    const auto a = parse(file_text(header("|u1", "False", row.text), 6));
    ASSERT_TRUE(a.ok()) << row.text << ": " << a.status().message();
    EXPECT_EQ(a->dims, row.dims) << row.text;
    EXPECT_EQ(a->data.size(), static_cast<size_t>(numel(row.dims)));
  }
}

TEST(Npy, ReadsVersions2And3) {
  for (const int version : {2, 3}) {
    const auto a = parse(file_text(header("<i2", "False", "(2,)"), 4, version));
    ASSERT_TRUE(a.ok()) << a.status().message();
    EXPECT_EQ(a->dims, (Dims{2}));
  }
}

TEST(Npy, FortranOrderBecomesStrides) {
  const auto a = parse(file_text(header("|u1", "True", "(2, 3, 4)"), 24));
  ASSERT_TRUE(a.ok());
  EXPECT_EQ(a->strides, (Dims{1, 2, 6}));
  const auto flat = parse(file_text(header("|u1", "True", "(4,)"), 4));
  ASSERT_TRUE(flat.ok());
  EXPECT_TRUE(flat->strides.empty());
}

TEST(Npy, SaysWhatIsWrong) {
  const std::string good = file_text(header("<f4", "False", "(2, 3)"), 24);
  const struct {
    std::string file;
    std::string_view message;
  } rows[] = {
      {"", "not a .npy file"},
      {"\x93NUMPX\x01", "not a .npy file"},
      {good.substr(0, 9), "not a .npy file"},
      {file_text(header("<f4", "False", "(2, 3)"), 24, 4), ".npy version 4 is not supported"},
      {good.substr(0, 40), ".npy header of 60 bytes exceeds the file of 40"},
      {good.substr(0, good.size() - 1), "f32 [2, 3] needs 24 bytes of data, the file has 23"},
      {file_text(header(">f4", "False", "(1,)"), 4), "descr: expected little endian, got '>f4'"},
      {file_text(header("<c8", "False", "(1,)"), 8), "descr: type '<c8' is not one Pteryx knows"},
      {file_text(header("<U16", "False", "(1,)"), 8),
       "descr: expected a plain type such as '<f4', got '<U16'"},
      {file_text("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,), }", 4),
       "descr: expected a plain type such as '<f4', got [('x'"},
      {file_text("{'descr': '<f4', 'shape': (1,), }", 4),
       ".npy header lacks descr, fortran_order or shape"},
      {file_text("{'descr': '<f4', 'fortran_order': False, 'shape': , }", 4),
       ".npy header lacks descr, fortran_order or shape"},
      {file_text("{'descr': '<f4', 'fortran_order': False, 'shape': (1", 4),
       ".npy header lacks descr, fortran_order or shape"},
      {file_text(header("<f4", "Maybe", "(1,)"), 4),
       "fortran_order: expected True or False, got Maybe"},
      {file_text(header("<f4", "False", "(-1,)"), 4), "shape: cannot read (-1,)"},
      {file_text(header("<f4", "False", "(x,)"), 4), "shape: cannot read (x,)"},
      {file_text(header("<f4", "False", "(99999999999999999999,)"), 4),
       "shape: cannot read (99999999999999999999,)"},
      {file_text(header("<f4", "False", "(4611686018427387904, 4)"), 4),
       "shape (4611686018427387904, 4) overflows"},
      {file_text(header("<f8", "False", "(4611686018427387904,)"), 4),
       "shape (4611686018427387904,) overflows"},
      {file_text(header("|u1", "True", "(0, 9223372036854775807, 2)"), 0),
       "shape (0, 9223372036854775807, 2) overflows"},
      {file_text(header("|u1", "False", "(1,1,1,1,1,1,1,1,1)"), 1),
       "shape: expected at most 8 dims, got (1,1,1,1,1,1,1,1,1)"},
  };
  for (const auto& row : rows) EXPECT_EQ(refusal(row.file), row.message);
}

TEST(Npy, NeverReadsOutsideTheFile) {
  const std::string good = file_text(header("<f4", "True", "(2, 3)"), 24);
  for (size_t n = 0; n < good.size(); ++n) EXPECT_FALSE(parse(good.substr(0, n)).ok()) << n;
}

class NpyFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("pteryx_npy_{}", getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(std::string_view name) const { return (folder_ / name).string(); }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      found.push_back(entry.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  }

  std::filesystem::path folder_;
};

TEST_F(NpyFile, WhatIsWrittenIsRead) {
  for (const Dims& dims : {Dims{}, Dims{6}, Dims{2, 3}, Dims{1, 1, 1, 1, 1, 1, 2, 3}, Dims{0, 4}}) {
    std::vector<int64_t> data(static_cast<size_t>(numel(dims)));
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<int64_t>(i) * -7;
    ASSERT_TRUE(write_npy(path("x.npy"), tensor<int64_t>(dims, data)).ok());
    const auto a = read_npy(path("x.npy"));
    ASSERT_TRUE(a.ok()) << a.status().message();
    EXPECT_EQ(a->dtype, DType::kI64);
    EXPECT_EQ(a->dims, dims);
    ASSERT_EQ(a->data.size(), data.size() * 8);
    EXPECT_TRUE(data.empty() || std::memcmp(a->data.data(), data.data(), a->data.size()) == 0);
  }
}

TEST_F(NpyFile, DataStartAt64) {
  ASSERT_TRUE(write_npy(path("x.npy"), tensor<float>({1}, std::vector<float>{1})).ok());
  std::ifstream in(path("x.npy"), std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  EXPECT_EQ(text.size() % 64, 4u);
  EXPECT_EQ(text[text.size() - 5], '\n');
}

TEST_F(NpyFile, WritesWholeOrNotAtAll) {
  const std::vector<float> one = {1};
  const Status s = write_npy(path("no/such/folder/x.npy"), tensor<float>({1}, one));
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.code(), Code::kIo);
  EXPECT_EQ(s.message(), fmt::format("cannot write {}: No such file or directory",
                                     path("no/such/folder/x.npy")));
  std::filesystem::create_directories(path("taken.npy/full"));
  EXPECT_FALSE(write_npy(path("taken.npy"), tensor<float>({1}, one)).ok());
  EXPECT_EQ(names(), std::vector<std::string>{"taken.npy"});
}

TEST_F(NpyFile, WritingTouchesNothingElse) {
  std::ofstream(path("x.npy.part")) << "precious";
  ASSERT_TRUE(write_npy(path("x.npy"), tensor<float>({1}, std::vector<float>{1})).ok());
  EXPECT_EQ(names(), (std::vector<std::string>{"x.npy", "x.npy.part"}));
  EXPECT_EQ(std::filesystem::file_size(path("x.npy.part")), 8u);
}

TEST_F(NpyFile, RefusesWhatNoBufferHolds) {
  const std::string text = file_text(header("|u1", "False", "(1099511627776,)"), 0);
  std::ofstream(path("x.npy"), std::ios::binary) << text;
  std::filesystem::resize_file(path("x.npy"), text.size() + (uint64_t{1} << 40));  // sparse
  const auto a = read_npy(path("x.npy"));
  ASSERT_FALSE(a.ok());
  EXPECT_EQ(a.status().message(),
            fmt::format("u8 [1099511627776] has 1099511627776 bytes: expected at most 4294967296\n"
                        "  while reading {}",
                        path("x.npy")));
}

TEST_F(NpyFile, ReadingNamesTheFile) {
  std::ofstream(path("bad.npy")) << "no numbers";
  const auto a = read_npy(path("bad.npy"));
  ASSERT_FALSE(a.ok());
  EXPECT_EQ(a.status().message(),
            fmt::format("not a .npy file\n  while reading {}", path("bad.npy")));
  EXPECT_EQ(read_npy(path("none.npy")).status().code(), Code::kIo);
}

}  // namespace
}  // namespace pteryx::cli
