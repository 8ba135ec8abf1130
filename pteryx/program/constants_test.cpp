// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/program/constants.h"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/program/program.h"
#include "pteryx/program/testing/build.h"
#include "pteryx/program/testing/expect.h"

namespace pteryx::program {
namespace {

using testing::DataFileBuilder;
using testing::expect_invalid;
using testing::FileBytes;
using testing::Header;
using testing::LayoutSpec;
using testing::ProgramBuilder;
using testing::TensorSpec;

constexpr std::string_view kReading = "\n  while reading method 'forward'";

std::string with_method(std::string_view message) {
  return std::string(message) + std::string(kReading);
}

// Bytes 0, 1, 2, ... so that a place shows in the content.
std::string counting(size_t n) {
  std::string text(n, '\0');
  for (size_t i = 0; i < n; ++i) text[i] = static_cast<char>(i);
  return text;
}

// The constant at 16 of a segment of 48 bytes, as a tensor of the given kind.
FileBytes with_constant(const TensorSpec& spec, std::vector<uint64_t> offsets = {0, 16}) {
  ProgramBuilder b;
  b.constant_segment = b.add_segment(counting(48));
  b.constant_offsets = std::move(offsets);
  b.add_tensor(spec);
  return b.finish();
}

const TensorRecord& tensor(const Program& p, size_t i = 0) {
  return std::get<TensorRecord>(p.methods()[0].values[i]);
}

TEST(Constants, AreExactlyAsLongAsTheTensor) {
  const FileBytes file = with_constant({.sizes = {5}, .data = 1});
  auto p = Program::parse(file);
  ASSERT_TRUE(p.ok()) << p.status().message();
  ASSERT_TRUE(tensor(*p).data);
  EXPECT_EQ(tensor(*p).data->size, 20U);
  EXPECT_EQ(file.bytes()[tensor(*p).data->offset + 0], std::byte{16});
  EXPECT_FALSE(tensor(*p).placement);
}

TEST(Constants, MayBeEmptyAtTheEnd) {
  const FileBytes file = with_constant({.sizes = {0, 7}, .data = 1}, {0, 48});
  auto p = Program::parse(file);
  ASSERT_TRUE(p.ok()) << p.status().message();
  EXPECT_TRUE(tensor(*p).data->size == 0);
}

TEST(Constants, OldFilesHaveThemInline) {
  ProgramBuilder b;
  const std::vector<uint8_t> none;
  const std::vector<uint8_t> data = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  b.constant_offsets.clear();
  b.inline_constants = {pte::CreateBufferDirect(b.fbb, &none),
                        pte::CreateBufferDirect(b.fbb, &data)};
  b.add_tensor({.sizes = {3}, .data = 1});
  const FileBytes file = b.finish(Header::kNone);
  auto p = Program::parse(file);
  ASSERT_TRUE(p.ok()) << p.status().message();
  EXPECT_EQ(tensor(*p).data->size, 12U);
  EXPECT_EQ(file.bytes()[tensor(*p).data->offset + 11], std::byte{12});
}

TEST(Constants, RefuseInlineBuffersThatAreShortOrAbsent) {
  const auto refuse = [](uint32_t index, const char* message) {
    ProgramBuilder b;
    const std::vector<uint8_t> data(8);
    b.inline_constants = {pte::CreateBuffer(b.fbb), pte::CreateBufferDirect(b.fbb, &data)};
    b.add_tensor({.sizes = {3}, .data = index});
    expect_invalid(Program::parse(b.finish()), with_method(message));
  };
  refuse(1, "value 0: constant 1 needs 12 bytes, its buffer has 8");
  refuse(2, "value 0: constant 2 of 2");
}

TEST(Constants, RefuseTwoForms) {
  ProgramBuilder b;
  b.constant_segment = b.add_segment(counting(48));
  b.constant_offsets = {0, 16};
  b.inline_constants = {pte::CreateBuffer(b.fbb)};
  expect_invalid(Program::parse(b.finish()), "constants stored both inline and in a segment");
}

TEST(Constants, RefuseSegmentIndices) {
  ProgramBuilder b;
  b.constant_segment = 3;
  b.constant_offsets = {0, 0};
  expect_invalid(Program::parse(b.finish()), "constant segment index 3 >= 0");
}

// A program without constants still has a table of one entry, which may name a segment that is not
// there.
TEST(Constants, IgnoreTheSegmentOfAnEmptyTable) {
  ProgramBuilder b;
  b.constant_segment = 3;
  EXPECT_TRUE(Program::parse(b.finish()).ok());
}

TEST(Constants, RefuseOffsetsOutsideTheSegment) {
  expect_invalid(Program::parse(with_constant({.sizes = {1}}, {0, 16, 49})),
                 "constant 2 offset 49 is outside its segment (48)");
}

TEST(Constants, RefuseDataOutsideTheSegment) {
  expect_invalid(Program::parse(with_constant({.sizes = {9}, .data = 1})),
                 with_method("value 0: constant 1 needs 36 bytes at 16, segment has 48"));
  expect_invalid(Program::parse(with_constant({.sizes = {1}, .data = 2})),
                 with_method("value 0: constant 2 of 2"));
}

TEST(Constants, RefuseMisalignedData) {
  expect_invalid(Program::parse(with_constant({.sizes = {1}, .data = 1}, {0, 18})),
                 with_method("value 0: constant 1 is misaligned for f32"));
  EXPECT_TRUE(Program::parse(
                  with_constant({.dtype = pte::ScalarType::HALF, .sizes = {1}, .data = 1}, {0, 18}))
                  .ok());
}

TEST(InitialValues, ComeFromTheirOwnSegmentAndHaveAPlace) {
  ProgramBuilder b;
  b.initial_value_segment = b.add_segment(counting(48));
  b.initial_value_offsets = {0, 0, 7};
  b.add_tensor({.sizes = {3}, .data = 2, .buffer = 1, .offset = 64});
  const FileBytes file = b.finish();
  auto p = Program::parse(file);
  ASSERT_TRUE(p.ok()) << p.status().message();
  EXPECT_EQ(tensor(*p).data->size, 12U);
  EXPECT_EQ(file.bytes()[tensor(*p).data->offset + 0], std::byte{7});  // packed, at any address
  EXPECT_EQ(tensor(*p).placement->offset, 64U);
}

TEST(InitialValues, RefuseWhatIsNotThere) {
  const auto refuse = [](std::vector<uint64_t> offsets, uint32_t segment,
                         std::string_view message) {
    ProgramBuilder b;
    b.add_segment(counting(48));
    b.initial_value_segment = segment;
    b.initial_value_offsets = std::move(offsets);
    b.add_tensor({.sizes = {3}, .data = 1, .buffer = 1});
    expect_invalid(Program::parse(b.finish()), message);
  };
  refuse({}, 0, with_method("value 0: initial value 1 of 0"));
  refuse({0, 40}, 0, with_method("value 0: initial value 1 needs 12 bytes at 40, segment has 48"));
  refuse({0, 49}, 0, "initial value 1 offset 49 is outside its segment (48)");
  refuse({0, 0}, 1, "initial value segment index 1 >= 1");
}

TEST(NamedData, MapsKeysToSegments) {
  ProgramBuilder b;
  const uint32_t segment = b.add_segment(counting(48));
  b.add_named_data("weight", segment);
  b.add_named_data("weight_again", segment);
  const FileBytes file = b.finish();
  auto p = Program::parse(file);
  ASSERT_TRUE(p.ok()) << p.status().message();
  EXPECT_EQ(p->named_data().size(), 2U);
  EXPECT_EQ(p->named_data().find("weight")->second.data.size, 48U);
  EXPECT_FALSE(p->named_data().find("weight")->second.layout);
}

TEST(NamedData, RefusesBadEntries) {
  const auto refuse = [](auto break_it, const char* message) {
    ProgramBuilder b;
    b.add_segment(counting(48));
    break_it(b);
    expect_invalid(Program::parse(b.finish()), message);
  };
  refuse([](ProgramBuilder& b) { b.add_named_data("", 0); }, "named data entry 0 has no key");
  refuse([](ProgramBuilder& b) { b.named_data = {pte::CreateNamedData(b.fbb)}; },
         "named data entry 0 has no key");
  refuse([](ProgramBuilder& b) { b.add_named_data("w", 1); }, "key 'w' refers to segment 1 of 1");
  refuse(
      [](ProgramBuilder& b) {
        b.add_named_data("w", 0);
        b.add_named_data("w", 0);
      },
      "duplicate key 'w'");
  refuse(
      [](ProgramBuilder& b) {
        b.leave_out("segments");
        b.add_named_data("w", 0);
      },
      "named data without segments");
}

TEST(NamedData, LongKeysAreCutInMessages) {
  ProgramBuilder b;
  b.add_segment("x");
  b.add_named_data(std::string(5000, 'k').c_str(), 7);
  expect_invalid(Program::parse(b.finish()),
                 "key '" + std::string(128, 'k') + "...' refers to segment 7 of 1");
}

// A program with one key, and a data file with the same key.
Result<Program> both(const std::string& in_program, const std::string& in_file) {
  ProgramBuilder b;
  b.add_named_data("w", b.add_segment(in_program));
  DataFileBuilder d;
  d.add_entry("w", d.add_segment(in_file));
  static std::vector<FileBytes> keep;
  keep.push_back(b.finish());
  keep.push_back(d.finish());
  const Bytes data[] = {keep.back().bytes()};
  return Program::parse(keep[keep.size() - 2], data);
}

TEST(NamedData, MayBeInAFileTooIfEqual) {
  EXPECT_TRUE(both("same", "same").ok());
  expect_invalid(both("same", "Same"), "key 'w' has other data in the program than in a data file");
  expect_invalid(both("same", "same+"),
                 "key 'w' has other data in the program than in a data file");
}

// A data file with one tensor of 2 x 3, and a program that wants a tensor from it.
Result<Program> external(const TensorSpec& wanted, const std::optional<LayoutSpec>& stored) {
  ProgramBuilder b;
  b.add_tensor(wanted);
  DataFileBuilder d;
  d.add_entry("layer.weight", d.add_segment(counting(24)), stored);
  static std::vector<FileBytes> keep;
  keep.push_back(b.finish());
  keep.push_back(d.finish());
  const Bytes data[] = {keep.back().bytes()};
  return Program::parse(keep[keep.size() - 2], data);
}
const LayoutSpec kStored = {.sizes = {2, 3}, .dim_order = {0, 1}};

TEST(ExternalData, IsFoundByName) {
  const auto p = external({.external_key = "layer.weight"}, kStored);
  ASSERT_TRUE(p.ok()) << p.status().message();
  EXPECT_EQ(tensor(*p).data->size, 24U);
}

TEST(ExternalData, MayBeTheInitialValueOfAMutableTensor) {
  const auto p = external({.data = 99, .buffer = 1, .external_key = "layer.weight"}, kStored);
  ASSERT_TRUE(p.ok()) << p.status().message();
  EXPECT_EQ(tensor(*p).data->size, 24U);
  EXPECT_TRUE(tensor(*p).placement);
}

TEST(ExternalData, RefusesWhatIsNotThere) {
  expect_invalid(external({.external_key = ""}, kStored),
                 with_method("value 0: external tensor has no name"));
  expect_invalid(external({.external_key = "bias"}, kStored),
                 with_method("value 0: no data for 'bias': was the .ptd file supplied?"));
}

TEST(ExternalData, RefusesAnotherLayout) {
  expect_invalid(
      external({.sizes = {3, 2}, .external_key = "layer.weight"}, kStored),
      with_method("value 0: 'layer.weight': file has f32 [2, 3], program expects f32 [3, 2]"));
  expect_invalid(
      external({.dtype = pte::ScalarType::INT, .external_key = "layer.weight"}, kStored),
      with_method("value 0: 'layer.weight': file has f32 [2, 3], program expects i32 [2, 3]"));
  expect_invalid(external({.dim_order = {{1, 0}}, .external_key = "layer.weight"}, kStored),
                 with_method("value 0: 'layer.weight': file has f32 [2, 3], program expects f32 "
                             "[2, 3] in order [1, 0]"));
  expect_invalid(
      external({.external_key = "layer.weight"}, std::nullopt),
      with_method("value 0: 'layer.weight': file has no layout, program expects f32 [2, 3]"));
}

TEST(ExternalData, RefusesMisalignedData) {
  ProgramBuilder b;
  b.add_tensor({.external_key = "w"});
  DataFileBuilder d;
  d.add_segment(counting(32));
  d.segment_table = {ptd::CreateDataSegment(d.fbb, 2, 24)};
  d.add_entry("w", 0, kStored);
  const FileBytes data = d.finish();
  const Bytes files[] = {data.bytes()};
  expect_invalid(Program::parse(b.finish(), files),
                 with_method("value 0: 'w' is misaligned for f32"));
}

}  // namespace
}  // namespace pteryx::program
