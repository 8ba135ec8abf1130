// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/program/container.h"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "pteryx/program/program.h"
#include "pteryx/program/testing/alone.h"
#include "pteryx/program/testing/build.h"
#include "pteryx/program/testing/expect.h"

namespace pteryx::program {
namespace {

using testing::expect_invalid;
using testing::expect_refused;
using testing::expect_unsupported;
using testing::FileBytes;
using testing::Header;
using testing::open_container;
using testing::ProgramBuilder;

// Offsets of the extended header's fields.
constexpr size_t kId = 4;
constexpr size_t kLength = 12;
constexpr size_t kProgramSize = 16;
constexpr size_t kBase = 24;
constexpr size_t kDataSize = 32;

// One segment of 100 bytes.
FileBytes with_segment(Header header = Header::kLong) {
  ProgramBuilder b;
  b.add_segment(std::string(100, 'x'));
  return b.finish(header);
}

TEST(Container, ReadsSegmentsAfterALongHeader) {
  const FileBytes file = with_segment();
  auto c = open_container(file);
  ASSERT_TRUE(c.ok()) << c.status().message();
  ASSERT_EQ(c->segments.size(), 1U);
  EXPECT_EQ(c->segments[0].size, 100U);
  EXPECT_EQ(file.bytes()[c->segments[0].offset], std::byte{'x'});
}

TEST(Container, ReadsSegmentsAfterAShortHeader) {
  const FileBytes file = with_segment(Header::kShort);
  auto c = open_container(file);
  ASSERT_TRUE(c.ok()) << c.status().message();
  EXPECT_EQ(c->segments[0].size, 100U);
}

TEST(Container, ReadsAFileWithoutHeader) {
  const FileBytes file = ProgramBuilder().finish(Header::kNone);
  auto c = open_container(file);
  ASSERT_TRUE(c.ok()) << c.status().message();
  EXPECT_EQ(c->tables.size(), file.size());
}

// A program whose only segment is empty is written without a header.
TEST(Container, TakesAnEmptySegmentWithoutHeader) {
  ProgramBuilder b;
  b.add_segment("");
  const FileBytes file = b.finish(Header::kNone);
  auto c = open_container(file);
  ASSERT_TRUE(c.ok()) << c.status().message();
  EXPECT_EQ(c->segments[0].size, 0U);
}

TEST(Container, TakesHeadersOfTheFuture) {
  FileBytes file = with_segment();
  EXPECT_TRUE(open_container(file.put<uint32_t>(kLength, 36)).ok());
}

TEST(Container, RefusesSmallFiles) {
  expect_invalid(open_container(FileBytes("")),
                 "file too small for an ExecuTorch program: 0 bytes");
  expect_invalid(open_container(with_segment().first(63)),
                 "file too small for an ExecuTorch program: 63 bytes");
}

TEST(Container, RefusesOtherIdentifiers) {
  const auto with_id = [](const char(&id)[5]) {
    FileBytes file = with_segment();
    for (size_t i = 0; i < 4; ++i) file.put(kId + i, id[i]);
    return open_container(file);
  };
  expect_invalid(with_id("GGUF"), "not an ExecuTorch program: identifier 'GGUF'");
  expect_invalid(with_id("\x01\x7f'\xff"),
                 "not an ExecuTorch program: identifier '\\x01\\x7f'\\xff'");
  expect_unsupported(with_id("ET13"),
                     "program identifier 'ET13' is not supported (expected 'ET12')");
  expect_unsupported(with_id("BP08"), "this is a bundled program; unwrap it first");
  expect_invalid(with_id("FT01"), "this is a .ptd data file, not a program");
}

TEST(Container, RefusesShortHeaderLengths) {
  FileBytes file = with_segment();
  expect_invalid(open_container(file.put<uint32_t>(kLength, 23)), "extended header length 23 < 24");
}

TEST(Container, RefusesHeaderLengthsPastTheProgram) {
  FileBytes file = with_segment();
  const auto size = static_cast<uint32_t>(*read_at<uint64_t>(file, kProgramSize));
  expect_invalid(open_container(file.put<uint32_t>(kLength, size)),
                 "program size " + std::to_string(size) + " leaves nothing after its header of " +
                     std::to_string(size + 8) + " bytes");
}

TEST(Container, RefusesProgramSizes) {
  FileBytes file = with_segment();
  expect_invalid(open_container(file.put<uint64_t>(kProgramSize, file.size() + 1)),
                 "program size " + std::to_string(file.size() + 1) + " exceeds file size " +
                     std::to_string(file.size()));
  expect_invalid(open_container(file.put<uint64_t>(kProgramSize, 40)),
                 "program size 40 leaves nothing after its header of 40 bytes");
}

TEST(Container, RefusesSegmentBases) {
  FileBytes file = with_segment(Header::kShort);
  const std::string program = std::to_string(*read_at<uint64_t>(file, kProgramSize));
  const std::string size = std::to_string(file.size());
  expect_invalid(
      open_container(file.put<uint64_t>(kBase, 64)),
      "segment base 64 lies inside the program (" + program + ") or past the end (" + size + ")");
  const std::string past = std::to_string(file.size() + 1);
  expect_invalid(open_container(file.put<uint64_t>(kBase, file.size() + 1)),
                 "segment base " + past + " lies inside the program (" + program +
                     ") or past the end (" + size + ")");
}

TEST(Container, RefusesTruncatedFiles) {
  const FileBytes whole = with_segment();
  const std::string base = std::to_string(*read_at<uint64_t>(whole, kBase));
  const FileBytes file = whole.first(whole.size() - 1);
  expect_invalid(open_container(file), "file is truncated: header promises 100 bytes from byte " +
                                           base + ", file has " + std::to_string(file.size()));
}

TEST(Container, RefusesDataSizesThatWrap) {
  FileBytes file = with_segment();
  const std::string base = std::to_string(*read_at<uint64_t>(file, kBase));
  expect_invalid(open_container(file.put<uint64_t>(kDataSize, ~uint64_t{0})),
                 "file is truncated: header promises 18446744073709551615 bytes from byte " + base +
                     ", file has " + std::to_string(file.size()));
}

TEST(Container, RefusesRootOffsets) {
  FileBytes file = with_segment();
  expect_invalid(open_container(file.put<uint32_t>(0, 36)), "root table offset 36 out of range");
  expect_invalid(open_container(file.put<uint32_t>(0, 62)), "root table offset 62 out of range");
  const auto end = static_cast<uint32_t>(*read_at<uint64_t>(file, kProgramSize));
  expect_invalid(open_container(file.put<uint32_t>(0, end)),
                 "root table offset " + std::to_string(end) + " out of range");
}

TEST(Container, RefusesCorruptFlatBuffers) {
  FileBytes file = with_segment();
  const uint32_t root = *read_at<uint32_t>(file, 0);
  expect_invalid(open_container(file.put<int32_t>(root, 0x7FFFFFFF)),
                 "program data is corrupt (FlatBuffer verification failed)");
}

TEST(Container, RefusesSegmentsPastTheEnd) {
  for (const Header header : {Header::kShort, Header::kLong}) {
    ProgramBuilder b;
    b.add_segment(std::string(100, 'x'));
    b.segment_table = {pte::CreateDataSegment(b.fbb, 0, 100),
                       pte::CreateDataSegment(b.fbb, 100, 1)};
    expect_invalid(open_container(b.finish(header)),
                   "segment 1 [100, +1) exceeds the file: expected at most 100 bytes");
  }
}

TEST(Container, RefusesSegmentsThatWrap) {
  ProgramBuilder b;
  b.add_segment(std::string(100, 'x'));
  b.segment_table = {pte::CreateDataSegment(b.fbb, ~uint64_t{0}, 2)};
  expect_invalid(
      open_container(b.finish()),
      "segment 0 [18446744073709551615, +2) exceeds the file: expected at most 100 bytes");
}

TEST(Container, RefusesSegmentsWithoutHeader) {
  ProgramBuilder b;
  b.segment_table = {pte::CreateDataSegment(b.fbb, 0, 16)};
  expect_invalid(open_container(b.finish(Header::kNone)),
                 "segment 0 [0, +16) exceeds the file: expected at most 0 bytes");
}

TEST(Container, RefusesOverlappingSegments) {
  ProgramBuilder b;
  b.add_segment(std::string(100, 'x'));
  b.segment_table = {pte::CreateDataSegment(b.fbb, 50, 50), pte::CreateDataSegment(b.fbb, 60, 0),
                     pte::CreateDataSegment(b.fbb, 0, 51)};
  expect_invalid(open_container(b.finish()), "segments 0 and 2 overlap");
}

// Visiting the same tables again and again must not multiply the time a small file takes.
TEST(Container, RefusesTablesVisitedWithoutEnd) {
  ProgramBuilder b;
  const auto value =
      pte::CreateEValue(b.fbb, pte::KernelTypes::Null, pte::CreateNull(b.fbb).Union());
  const std::vector<flatbuffers::Offset<pte::EValue>> values(2000, value);
  const auto plan = pte::CreateExecutionPlanDirect(b.fbb, "again", 0, &values);
  b.plans.assign(2000, plan);
  expect_invalid(open_container(b.finish()),
                 "program data is corrupt (FlatBuffer verification failed)");
}

TEST(Container, BytesMayBeAnywhere) {
  const FileBytes file(" " + with_segment().text());
  EXPECT_TRUE(Program::parse(file.bytes().subspan(1)).ok());
}

}  // namespace
}  // namespace pteryx::program
