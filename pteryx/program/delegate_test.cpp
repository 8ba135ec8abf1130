// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/program/delegate.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/program/testing/alone.h"
#include "pteryx/program/testing/build.h"
#include "pteryx/program/testing/expect.h"

namespace pteryx::program {
namespace {

using testing::BlobBuilder;
using testing::BlobTensorSpec;
using testing::expect_invalid;
using testing::FileBytes;
using testing::parse_blob;

constexpr size_t kBytesSize = 22;  // where the header says how much there is inline

const NamedData kNothing;

using Change = std::function<void(BlobBuilder&)>;

Result<Blob> parse(const Change& change, const NamedData& named = kNothing) {
  BlobBuilder b;
  change(b);
  return parse_blob(FileBytes(b.finish()), named);
}
void refuse(const Change& change, const std::string& message) {
  expect_invalid(parse(change), message);
}

TEST(Blob, EveryKindIsRead) {
  BlobBuilder b;
  b.add_null();
  b.add_int(-3);
  b.add_double(0.25);
  b.add_bool(true);
  b.add_string("text");
  b.add_tensor({.dtype = vk::VkDataType::FLOAT16, .dims = {4, 5}, .memory_object = 3});
  b.add_symint();
  b.add_int_list({1, -2, 3});
  b.add_double_list({1.5});
  b.add_bool_list({1, 0});
  b.add_value_list({5, 0, 6, 1});
  b.add_call("aten.add.Tensor", {5, 5, 1, 5});
  b.inputs = {5, 6};
  b.outputs = {5, 5};
  auto blob = parse_blob(FileBytes(b.finish()), kNothing);
  ASSERT_TRUE(blob.ok()) << blob.status().message();
  const auto& v = blob->values;
  ASSERT_EQ(v.size(), 11U);
  EXPECT_TRUE(std::holds_alternative<NullRecord>(v[0]));
  EXPECT_EQ(std::get<int64_t>(v[1]), -3);
  EXPECT_EQ(std::get<double>(v[2]), 0.25);
  EXPECT_TRUE(std::get<bool>(v[3]));
  EXPECT_EQ(std::get<std::string>(v[4]), "text");
  const auto& tensor = std::get<BlobTensor>(v[5]);
  EXPECT_EQ(tensor.dtype, DType::kF16);
  EXPECT_EQ(tensor.dims, (Dims{4, 5}));
  EXPECT_EQ(tensor.memory_object, 3);
  EXPECT_FALSE(tensor.constant);
  EXPECT_TRUE(std::holds_alternative<BlobSymInt>(v[6]));
  EXPECT_EQ(std::get<BlobIntList>(v[7]).items, (std::vector<int64_t>{1, -2, 3}));
  EXPECT_EQ(std::get<DoubleListRecord>(v[8]).items, (std::vector<double>{1.5}));
  EXPECT_EQ(std::get<BoolListRecord>(v[9]).items, (std::vector<bool>{true, false}));
  EXPECT_EQ(std::get<BlobValueList>(v[10]).items, (std::vector<uint32_t>{5, 0, 6, 1}));
  ASSERT_EQ(blob->chain.size(), 1U);
  EXPECT_EQ(blob->chain[0].name, "aten.add.Tensor");
  EXPECT_EQ(blob->chain[0].args, (std::vector<uint32_t>{5, 5, 1, 5}));
  EXPECT_EQ(blob->inputs, (std::vector<uint32_t>{5, 6}));
  EXPECT_EQ(blob->outputs, (std::vector<uint32_t>{5, 5}));
}

TEST(Blob, EveryDTypeIsRead) {
  const std::vector<std::pair<vk::VkDataType, DType>> types = {
      {vk::VkDataType::BOOL, DType::kBool},   {vk::VkDataType::UINT8, DType::kU8},
      {vk::VkDataType::INT8, DType::kI8},     {vk::VkDataType::INT32, DType::kI32},
      {vk::VkDataType::FLOAT16, DType::kF16}, {vk::VkDataType::FLOAT32, DType::kF32},
      {vk::VkDataType::FLOAT64, DType::kF64}, {vk::VkDataType::INT64, DType::kI64}};
  for (const auto& [wire, dtype] : types) {
    auto blob = parse([&](BlobBuilder& b) { b.add_tensor({.dtype = wire}); });
    ASSERT_TRUE(blob.ok());
    EXPECT_EQ(std::get<BlobTensor>(blob->values[0]).dtype, dtype);
  }
}

// Absent fields: no values, lists without items, a tensor without dims, an object 0 and a constant
// 0.
TEST(Blob, AbsentListsAreEmpty) {
  flatbuffers::FlatBufferBuilder f;
  vk::FinishVkGraphBuffer(f, vk::CreateVkGraph(f));
  EXPECT_TRUE(parse([](BlobBuilder&) {}).ok());
  auto blob = parse([](BlobBuilder& b) {
    b.add_value(vk::GraphTypes::IntList, vk::CreateIntList(b.fbb).Union());
    b.add_value(vk::GraphTypes::DoubleList, vk::CreateDoubleList(b.fbb).Union());
    b.add_value(vk::GraphTypes::BoolList, vk::CreateBoolList(b.fbb).Union());
    b.add_value(vk::GraphTypes::ValueList, vk::CreateValueList(b.fbb).Union());
    b.add_value(vk::GraphTypes::Null, 0);
  });
  ASSERT_TRUE(blob.ok()) << blob.status().message();
  EXPECT_TRUE(std::get<BlobIntList>(blob->values[0]).items.empty());
}

TEST(Blob, AbsentConstantIdIsConstantZero) {
  refuse(
      [](BlobBuilder& b) {
        b.add_value(vk::GraphTypes::VkTensor, vk::CreateVkTensor(b.fbb).Union());
      },
      "value 0: constant 0 of 0");
}

TEST(Blob, IsReadAtAnyAddress) {
  BlobBuilder b;
  b.add_int(7);
  b.add_int_list({1, 2, 3});
  const std::string text = b.finish();
  for (size_t shift = 0; shift < 8; ++shift) {
    const FileBytes file(std::string(shift, '\0') + text);
    auto blob = parse_blob(file.bytes().subspan(shift), kNothing);
    ASSERT_TRUE(blob.ok()) << blob.status().message();
    EXPECT_EQ(std::get<int64_t>(blob->values[0]), 7);
    EXPECT_EQ(std::get<BlobIntList>(blob->values[1]).items.back(), 3);
  }
}

TEST(BlobValues, RefuseUnknownKinds) {
  refuse(
      [](BlobBuilder& b) {
        b.add_value(static_cast<vk::GraphTypes>(12), vk::CreateNull(b.fbb).Union());
      },
      "value 0: unknown kind 12");
  refuse([](BlobBuilder& b) { b.add_value(vk::GraphTypes::NONE, 0); }, "value 0: unknown kind 0");
}

TEST(BlobValues, RefuseMissingContent) {
  refuse([](BlobBuilder& b) { b.add_value(vk::GraphTypes::Int, 0); },
         "value 0: malformed: kind Int without content");
  refuse(
      [](BlobBuilder& b) { b.add_value(vk::GraphTypes::String, vk::CreateString(b.fbb).Union()); },
      "value 0: malformed: missing string");
}

TEST(BlobValues, RefuseListItems) {
  refuse([](BlobBuilder& b) { b.add_value_list({1}); }, "value 0: item 0 refers to 1 of 1");
  refuse([](BlobBuilder& b) { b.add_value_list({-1}); }, "value 0: item 0 refers to -1 of 1");
  refuse([](BlobBuilder& b) { b.add_value_list({0}); },
         "value 0: item 0 (value 0) is a list inside a list");
  refuse(
      [](BlobBuilder& b) {
        b.add_int_list({});
        b.add_value_list({0});
      },
      "value 1: item 0 (value 0) is a list inside a list");
}

TEST(BlobTensors, RefuseShapes) {
  constexpr uint32_t kMax = UINT32_MAX;
  refuse([](BlobBuilder& b) { b.add_tensor({.dims = {kMax, kMax}}); },
         "value 0: shape [4294967295, 4294967295] overflows");
}

TEST(BlobTensors, UnsupportedOnesAreNamed) {
  const auto unsupported = [](const BlobTensorSpec& spec, std::string_view why) {
    auto blob = parse([&](BlobBuilder& b) { b.add_tensor(spec); });
    ASSERT_TRUE(blob.ok()) << blob.status().message();
    EXPECT_EQ(std::get<BlobTensor>(blob->values[0]).unsupported, why);
  };
  unsupported({.dims = std::vector<uint32_t>(9, 1)}, "rank: expected at most 8, got 9");
  unsupported({.dtype = vk::VkDataType::UNSET}, "unsupported dtype UNSET");
  unsupported({.dtype = static_cast<vk::VkDataType>(8)}, "unsupported dtype number 8");
}

TEST(BlobTensors, RefuseMemoryObjectsFarBeyondTheGraph) {
  refuse([](BlobBuilder& b) { b.add_tensor({.memory_object = INT32_MAX}); },
         "value 0: memory object 2147483647 of a graph of 1 values");
  auto blob = parse([](BlobBuilder& b) { b.add_tensor({.memory_object = INT32_MIN}); });
  ASSERT_TRUE(blob.ok());
  EXPECT_EQ(std::get<BlobTensor>(blob->values[0]).memory_object, -1);
}

FileBytes& last_file() {
  static FileBytes file("");
  return file;
}

// A tensor of 24 bytes whose constant is at `offset` of a region of 48.
Result<Blob> with_inline(uint64_t offset, uint64_t length, bool known_size = true) {
  BlobBuilder b;
  b.add_tensor({.constant = b.add_inline_constant(offset, length)});
  last_file() = FileBytes(b.finish(std::string(24, 'a') + std::string(24, 'b')));
  if (!known_size) last_file().put<uint64_t>(kBytesSize, 0);
  return parse_blob(last_file(), kNothing);
}

TEST(BlobConstants, MayBeInline) {
  for (const bool known_size : {true, false}) {
    auto blob = with_inline(24, 24, known_size);
    ASSERT_TRUE(blob.ok()) << blob.status().message();
    const auto& t = std::get<BlobTensor>(blob->values[0]);
    ASSERT_EQ(t.constant->size, 24U);
    EXPECT_EQ(last_file().bytes()[t.constant->offset], std::byte{'b'});
    EXPECT_EQ(t.constant_key, "");
  }
}

TEST(BlobConstants, RefuseInlineDataOutside) {
  expect_invalid(with_inline(25, 24), "value 0: constant 0: needs 24 bytes at 25, region has 48");
  expect_invalid(with_inline(~uint64_t{1}, 24),
                 "value 0: constant 0: needs 24 bytes at 18446744073709551614, region has 48");
  expect_invalid(with_inline(0, 23), "value 0: constant 0: has length 23, need 24");
  expect_invalid(with_inline(2, 24), "value 0: constant 0: is misaligned for f32");
}

TEST(BlobConstants, EmptyOnesNeedNoData) {
  auto blob = parse([](BlobBuilder& b) {
    b.add_tensor({.dims = {0, 4}, .constant = b.add_inline_constant(~uint64_t{1}, 0)});
  });
  ASSERT_TRUE(blob.ok()) << blob.status().message();
  EXPECT_TRUE(std::get<BlobTensor>(blob->values[0]).constant->size == 0);
}

// A tensor of 24 bytes whose constant is named data.
Result<Blob> with_named(const char* key, uint64_t length, const NamedData& named) {
  return parse(
      [&](BlobBuilder& b) { b.add_tensor({.constant = b.add_named_constant(key, length)}); },
      named);
}

TEST(BlobConstants, MayBeNamed) {
  const NamedData named = {{"weight", {.data = {1, 16, 32}, .layout = {}}}};
  auto blob = with_named("weight", 24, named);
  ASSERT_TRUE(blob.ok()) << blob.status().message();
  const auto& t = std::get<BlobTensor>(blob->values[0]);
  EXPECT_EQ(t.constant, (ByteRange{1, 16, 24}));  // less than the blob has
  EXPECT_EQ(t.constant_key, "weight");
}

TEST(BlobConstants, RefuseNamedDataThatIsNotThere) {
  const NamedData named = {{"short", {.data = {1, 16, 23}, .layout = {}}},
                           {"odd", {.data = {1, 17, 31}, .layout = {}}}};
  expect_invalid(with_named("", 24, named), "value 0: constant 0: has no key");
  expect_invalid(with_named("w", 24, named),
                 "value 0: constant 0: no data named 'w' (missing .ptd file?)");
  expect_invalid(with_named("short", 24, named),
                 "value 0: constant 0: 'short' has 23 bytes, need 24");
  expect_invalid(with_named("short", 8, named), "value 0: constant 0: has length 8, need 24");
  expect_invalid(with_named("odd", 24, named), "value 0: constant 0: is misaligned for f32");
}

TEST(BlobConstants, RefuseIdsOutside) {
  refuse([](BlobBuilder& b) { b.add_tensor({.constant = 1}); }, "value 0: constant 1 of 0");
}

TEST(BlobCalls, Refuse) {
  const auto refuse_call = [](auto add, const std::string& message) {
    refuse(
        [&](BlobBuilder& b) {
          b.add_tensor();
          add(b);
        },
        message);
  };
  refuse_call([](BlobBuilder& b) { b.chain = {vk::CreateOperatorCall(b.fbb)}; },
              "call 0 (): has no operator name");
  refuse_call(
      [](BlobBuilder& b) {
        const std::vector<int32_t> args = {0};
        b.chain = {vk::CreateOperatorCallDirect(b.fbb, 0, "a\nb", &args)};
      },
      "call 0 (a\\x0ab): name 'a\\x0ab': expected at most 256 bytes, none of them a control "
      "character");
  refuse_call(
      [](BlobBuilder& b) {
        b.chain = {vk::CreateOperatorCallDirect(b.fbb, 0, "aten.relu.default")};
      },
      "call 0 (aten.relu.default): has no arguments");
  refuse_call([](BlobBuilder& b) { b.add_call("aten.relu.default", {}); },
              "call 0 (aten.relu.default): has no arguments");
  refuse_call([](BlobBuilder& b) { b.add_call("aten.relu.default", {0, 1}); },
              "call 0 (aten.relu.default): argument 1 refers to value 1 of 1");
  refuse_call([](BlobBuilder& b) { b.add_call("a\nb", {-1}); },
              "call 0 (a\\x0ab): argument 0 refers to value -1 of 1");
}

TEST(BlobEnds, Refuse) {
  const auto refuse_ends = [](std::vector<uint32_t> inputs, std::vector<uint32_t> outputs,
                              const std::string& message) {
    refuse(
        [&](BlobBuilder& b) {
          b.add_tensor();
          b.add_int(1);
          b.inputs = inputs;
          b.outputs = outputs;
        },
        message);
  };
  refuse_ends({2}, {}, "input 0 refers to value 2 of 2");
  refuse_ends({}, {UINT32_MAX}, "output 0 refers to value 4294967295 of 2");
  refuse_ends({1}, {}, "input 0 refers to value 1, which is an integer");
  refuse_ends({}, {0, 1}, "output 1 refers to value 1, which is an integer");
  refuse_ends({0, 0}, {}, "input 1 refers to value 0, which is an input already");
}

TEST(Blob, RefusesStringsSharedWithoutEnd) {
  BlobBuilder b;
  const auto text = b.fbb.CreateString(std::string(20000, 'x'));
  for (uint32_t i = 0; i < 2000; ++i)
    b.add_value(vk::GraphTypes::String, vk::CreateString(b.fbb, text).Union());
  auto blob = parse_blob(FileBytes(b.finish()), kNothing);
  ASSERT_FALSE(blob.ok());
  EXPECT_NE(blob.status().message().find("refer to themselves so often"), std::string::npos);
}

// Writers may store equal names once.
TEST(Blob, TakesSharedNames) {
  BlobBuilder b;
  b.add_tensor();
  const auto name = b.fbb.CreateString("et_vk.linear_q4gsw.default");
  for (uint32_t i = 0; i < 5000; ++i) {
    const auto args = b.fbb.CreateVector(std::vector<int32_t>{0, 0});
    b.chain.push_back(vk::CreateOperatorCall(b.fbb, i, name, args));
  }
  auto blob = parse_blob(FileBytes(b.finish()), kNothing);
  EXPECT_TRUE(blob.ok()) << blob.status().message();
}

TEST(Blob, LoadsManyNodesQuickly) {
  BlobBuilder b;
  constexpr int32_t kNodes = 150000;
  for (int32_t i = 0; i <= kNodes; ++i) b.add_tensor({.memory_object = i % 2});
  for (int32_t i = 0; i < kNodes; ++i) b.add_call("aten.relu.default", {i, i + 1});
  const FileBytes file(b.finish());
  const auto start = std::chrono::steady_clock::now();
  auto blob = parse_blob(file, kNothing);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(blob.ok()) << blob.status().message();
  EXPECT_EQ(blob->chain.size(), static_cast<size_t>(kNodes));
  RecordProperty("seconds", std::to_string(seconds.count()));
  EXPECT_LT(seconds.count(), 5.0);  // well under one second, but tests also run under sanitizers
}

}  // namespace
}  // namespace pteryx::program
