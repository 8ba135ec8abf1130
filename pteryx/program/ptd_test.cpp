// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/program/program.h"
#include "pteryx/program/testing/alone.h"
#include "pteryx/program/testing/build.h"
#include "pteryx/program/testing/expect.h"

namespace pteryx::program {
namespace {

using testing::DataFileBuilder;
using testing::expect_refused;
using testing::FileBytes;
using testing::LayoutSpec;
using testing::read_data_file;
using testing::read_fixture;

constexpr const char* kReading = "\n  while reading weights.ptd";

// Offsets of the header's fields.
constexpr size_t kLength = 12;
constexpr size_t kInserted = 16;
constexpr size_t kFlatBufferSize = 24;
constexpr size_t kBase = 32;
constexpr size_t kDataSize = 40;

FileBytes small() {
  DataFileBuilder d;
  d.add_entry("w", d.add_segment(std::string(24, 'x')),
              LayoutSpec{.sizes = {2, 3}, .dim_order = {1, 0}});
  d.add_entry("blob", d.add_segment("opaque"));
  return d.finish();
}

void refuse(Bytes file, const std::string& message, Code code = Code::kInvalidProgram) {
  NamedData named;
  expect_refused(read_data_file(file, "weights.ptd", named), code, message + kReading);
  EXPECT_TRUE(named.empty());
}

TEST(DataFile, EntriesAreBlobsWithOrWithoutLayout) {
  const FileBytes file = small();
  NamedData named;
  const Status status = read_data_file(file, "weights.ptd", named);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(named.size(), 2U);
  const NamedBlob& w = named.find("w")->second;
  EXPECT_EQ(w.data.size, 24U);
  EXPECT_EQ(w.layout->dtype, DType::kF32);
  EXPECT_EQ(w.layout->sizes, (Dims{2, 3}));
  EXPECT_EQ(w.layout->dim_order, (std::vector<uint8_t>{1, 0}));
  const NamedBlob& blob = named.find("blob")->second;
  EXPECT_EQ(blob.data.size, 6U);
  EXPECT_FALSE(blob.layout);
}

TEST(DataFile, RefusesOtherFiles) {
  refuse(FileBytes(""), "not a PTD file");
  refuse(small().first(63), "not a PTD file");
  refuse(FileBytes(std::string(100, 'x')), "not a PTD file");
  FileBytes no_header = small();
  refuse(no_header.put<uint32_t>(8, 0), "not a PTD file");
}

TEST(DataFile, RefusesHeaders) {
  refuse(small().put<uint32_t>(kLength, 39), "PTD header length 39 < 40");
  const FileBytes file = small();
  const std::string inserted = "48";
  const std::string size = std::to_string(*read_at<uint64_t>(file, kFlatBufferSize));
  const std::string base = std::to_string(*read_at<uint64_t>(file, kBase));
  const std::string whole = std::to_string(file.size());
  refuse(small().put<uint64_t>(kInserted, 39), "PTD header is inconsistent: 39 + " + size +
                                                   " bytes of metadata, data from " + base +
                                                   ", file has " + whole);
  refuse(small().put<uint64_t>(kFlatBufferSize, ~uint64_t{0}),
         "PTD header is inconsistent: 48 + 18446744073709551615 bytes of metadata, data from " +
             base + ", file has " + whole);
  refuse(small().put<uint64_t>(kBase, 64), "PTD header is inconsistent: 48 + " + size +
                                               " bytes of metadata, data from 64, file has " +
                                               whole);
  refuse(small().put<uint64_t>(kBase, file.size() + 1),
         "PTD header is inconsistent: 48 + " + size + " bytes of metadata, data from " +
             std::to_string(file.size() + 1) + ", file has " + whole);
}

TEST(DataFile, RefusesTruncatedFiles) {
  const FileBytes file = small();
  const uint64_t base = *read_at<uint64_t>(file, kBase);
  const uint64_t size = *read_at<uint64_t>(file, kDataSize);
  refuse(file.first(file.size() - 1), "PTD file truncated: expected " + std::to_string(size) +
                                          " bytes from " + std::to_string(base) + ", have " +
                                          std::to_string(size - 1));
  refuse(small().put<uint64_t>(kDataSize, ~uint64_t{0}),
         "PTD file truncated: expected 18446744073709551615 bytes from " + std::to_string(base) +
             ", have " + std::to_string(size));
}

TEST(DataFile, RefusesMetadata) {
  FileBytes corrupt = small();
  const uint32_t root = *read_at<uint32_t>(corrupt, 0);
  refuse(corrupt.put<int32_t>(root, 0x7FFFFFFF),
         "PTD metadata is corrupt, or written by ExecuTorch 0.6");
  DataFileBuilder newer;
  newer.version = 1;
  refuse(newer.finish(), "PTD version 1 unsupported", Code::kUnsupported);
  DataFileBuilder bare;
  bare.leave_out_tables();
  refuse(bare.finish(), "PTD file has no data table");
}

// Release 0.6 kept a number where there is a list now.
TEST(DataFile, RefusesFilesOfRelease06) {
  DataFileBuilder d;
  d.add_segment("x");
  const auto start = d.fbb.StartTable();
  d.fbb.AddElement<uint32_t>(ptd::FlatTensor::VT_SEGMENTS, 16, 0);
  d.fbb.Finish(flatbuffers::Offset<ptd::FlatTensor>(d.fbb.EndTable(start)), "FT01");
  const std::string flatbuffer(reinterpret_cast<const char*>(d.fbb.GetBufferPointer()),
                               d.fbb.GetSize());
  FileBytes file(flatbuffer.substr(0, 8) + "FH01" + std::string(44, '\0') + flatbuffer.substr(8) +
                 std::string(64, '\0'));
  file.put<uint32_t>(0, *read_at<uint32_t>(file, 0) + 48)
      .put<uint32_t>(kLength, 40)
      .put<uint64_t>(kInserted, 48)
      .put<uint64_t>(kFlatBufferSize, flatbuffer.size())
      .put<uint64_t>(kBase, file.size());
  refuse(file, "PTD metadata is corrupt, or written by ExecuTorch 0.6");
}

TEST(DataFile, RefusesSegments) {
  DataFileBuilder d;
  d.add_segment(std::string(24, 'x'));
  d.segment_table = {ptd::CreateDataSegment(d.fbb, 0, 24), ptd::CreateDataSegment(d.fbb, 8, 17)};
  refuse(d.finish(), "PTD segment 1 exceeds the file: [8, +17) of 24");
}

TEST(DataFile, RefusesKeys) {
  DataFileBuilder no_key;
  no_key.add_entry("", no_key.add_segment("x"));
  refuse(no_key.finish(), "named data entry 0 has no key");
  DataFileBuilder absent;
  absent.add_segment("x");
  absent.entries = {ptd::CreateNamedData(absent.fbb)};
  refuse(absent.finish(), "named data entry 0 has no key");
  DataFileBuilder twice;
  twice.add_entry("w", twice.add_segment("x"));
  twice.add_entry("w", 0);
  refuse(twice.finish(), "duplicate key 'w'");
  DataFileBuilder outside;
  outside.add_entry("w", 1);
  refuse(outside.finish(), "key 'w' refers to segment 1 of 0");
}

TEST(DataFile, RefusesLayouts) {
  const auto refuse_layout = [](const LayoutSpec& layout, const std::string& why,
                                Code code = Code::kInvalidProgram) {
    DataFileBuilder d;
    d.add_entry("w", d.add_segment(std::string(24, 'x')), layout);
    refuse(d.finish(), "PTD entry 'w': bad layout: " + why, code);
  };
  refuse_layout({.sizes = {2, 3}, .dim_order = {0}}, "rank mismatch: 2 sizes, 1 in dim_order");
  refuse_layout({.sizes = {-1}, .dim_order = {0}}, "shape [-1] is negative");
  refuse_layout({.sizes = {2}, .dim_order = {1}}, "invalid dim_order [1]");
  refuse_layout({.sizes = {7}, .dim_order = {0}}, "f32 [7] needs 28 bytes, segment has 24");
  refuse_layout({.dtype = pte::ScalarType::BITS16, .sizes = {1}, .dim_order = {0}},
                "unsupported dtype BITS16", Code::kUnsupported);
  DataFileBuilder d;
  d.entries = {
      ptd::CreateNamedDataDirect(d.fbb, "w", d.add_segment("x"), ptd::CreateTensorLayout(d.fbb))};
  refuse(d.finish(), "PTD entry 'w': bad layout: tensor has no sizes");
}

TEST(DataFile, KeysAreUniqueAcrossFiles) {
  const FileBytes first = small();
  DataFileBuilder d;
  d.add_entry("new", d.add_segment("x"));
  d.add_entry("w", 0);
  const FileBytes second = d.finish();
  NamedData named;
  ASSERT_TRUE(read_data_file(first, "first.ptd", named).ok());
  expect_refused(read_data_file(second, "second.ptd", named), Code::kInvalidProgram,
                 "duplicate key 'w'\n  while reading second.ptd");
  EXPECT_EQ(named.size(), 2U);  // nothing of the second
}

TEST(DataFile, BytesMayBeAnywhere) {
  const FileBytes file(" " + small().text());
  NamedData named;
  EXPECT_TRUE(read_data_file(file.bytes().subspan(1), "weights.ptd", named).ok());
}

TEST(DataFile, ParseNumbersItsDataFiles) {
  const FileBytes program = read_fixture("ops/add.pte");
  const FileBytes bad("?");
  const Bytes files[] = {bad.bytes()};
  expect_refused(Program::parse(program, files), Code::kInvalidProgram,
                 "not a PTD file\n  while reading data file 0");
}

}  // namespace
}  // namespace pteryx::program
