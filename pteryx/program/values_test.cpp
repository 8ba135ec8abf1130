// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/program/values.h"

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/program/program.h"
#include "pteryx/program/testing/build.h"
#include "pteryx/program/testing/expect.h"

namespace pteryx::program {
namespace {

using testing::expect_invalid;
using testing::FileBytes;
using testing::ProgramBuilder;
using testing::TensorSpec;

constexpr const char* kReading = "\n  while reading method 'forward'";

using Change = std::function<void(ProgramBuilder&)>;

Result<Program> parse(const Change& change) {
  ProgramBuilder b;
  change(b);
  return Program::parse(b.finish());
}
void refuse(const Change& change, const std::string& message) {
  expect_invalid(parse(change), message + kReading);
}
void refuse_tensor(const TensorSpec& spec, const std::string& message) {
  refuse([&](ProgramBuilder& b) { b.add_tensor(spec); }, message);
}
void unsupported_tensor(const TensorSpec& spec, const std::string& why) {
  auto p = parse([&](ProgramBuilder& b) { b.add_tensor(spec); });
  ASSERT_TRUE(p.ok()) << p.status().message();
  EXPECT_EQ(std::get<TensorRecord>(p->methods()[0].values[0]).unsupported, why);
}

TEST(Values, EveryKindIsRead) {
  ProgramBuilder b;
  b.add_null();
  b.add_int(-7);
  b.add_bool(true);
  b.add_double(0.5);
  b.add_string("text");
  b.add_tensor({.sizes = {2, 3}, .dim_order = {{1, 0}}, .buffer = 1, .offset = 16});
  b.add_int_list({1, 1, 9});
  b.add_double_list({1.5, -2});
  b.add_bool_list({1, 0, 1});
  b.add_int(3);
  b.add_tensor_list({5, 5});
  b.add_optional_tensor_list({-1, 5, 0});
  const FileBytes file = b.finish();
  auto p = Program::parse(file);
  ASSERT_TRUE(p.ok()) << p.status().message();
  const auto& v = p->methods()[0].values;
  ASSERT_EQ(v.size(), 12U);
  EXPECT_TRUE(std::holds_alternative<NullRecord>(v[0]));
  EXPECT_EQ(std::get<int64_t>(v[1]), -7);
  EXPECT_TRUE(std::get<bool>(v[2]));
  EXPECT_EQ(std::get<double>(v[3]), 0.5);
  EXPECT_EQ(std::get<std::string>(v[4]), "text");
  const auto& tensor = std::get<TensorRecord>(v[5]);
  EXPECT_EQ(tensor.dtype, DType::kF32);
  EXPECT_EQ(tensor.sizes, (Dims{2, 3}));
  EXPECT_EQ(tensor.dim_order, (std::vector<uint8_t>{1, 0}));
  EXPECT_FALSE(tensor.dynamic);
  EXPECT_EQ(tensor.placement->buffer, 1U);
  EXPECT_EQ(tensor.placement->offset, 16U);
  EXPECT_FALSE(tensor.data);
  EXPECT_EQ(std::get<IntListRecord>(v[6]).items, (std::vector<uint32_t>{1, 1, 9}));
  EXPECT_EQ(std::get<DoubleListRecord>(v[7]).items, (std::vector<double>{1.5, -2}));
  EXPECT_EQ(std::get<BoolListRecord>(v[8]).items, (std::vector<bool>{true, false, true}));
  EXPECT_EQ(std::get<TensorListRecord>(v[10]).items, (std::vector<std::optional<uint32_t>>{5, 5}));
  EXPECT_EQ(std::get<TensorListRecord>(v[11]).items,
            (std::vector<std::optional<uint32_t>>{std::nullopt, 5, std::nullopt}));
}

TEST(Values, NullNeedsNoContent) {
  EXPECT_TRUE(parse([](ProgramBuilder& b) { b.add_value(pte::KernelTypes::Null, 0); }).ok());
}

TEST(Values, RefuseUnknownKinds) {
  refuse(
      [](ProgramBuilder& b) {
        b.add_value(static_cast<pte::KernelTypes>(12), pte::CreateNull(b.fbb).Union());
      },
      "value 0: unknown kind 12");
  refuse([](ProgramBuilder& b) { b.add_value(pte::KernelTypes::NONE, 0); },
         "value 0: unknown kind 0");
}

TEST(Values, RefuseMissingContent) {
  refuse([](ProgramBuilder& b) { b.add_value(pte::KernelTypes::Tensor, 0); },
         "value 0: kind Tensor without content");
  refuse(
      [](ProgramBuilder& b) {
        b.add_value(pte::KernelTypes::String, pte::CreateString(b.fbb).Union());
      },
      "value 0: missing string");
  for (const pte::KernelTypes kind :
       {pte::KernelTypes::IntList, pte::KernelTypes::DoubleList, pte::KernelTypes::BoolList,
        pte::KernelTypes::TensorList, pte::KernelTypes::OptionalTensorList}) {
    refuse([&](ProgramBuilder& b) { b.add_value(kind, pte::CreateNull(b.fbb).Union()); },
           "value 0: list has no items");
  }
}

TEST(Values, ListItemsStayInTheTable) {
  refuse([](ProgramBuilder& b) { b.add_int_list({1}); }, "value 0: item 0 refers to value 1 of 1");
  refuse([](ProgramBuilder& b) { b.add_int_list({-1}); },
         "value 0: item 0 refers to value -1 of 1");
  refuse([](ProgramBuilder& b) { b.add_int_list({int64_t{1} << 32}); },
         "value 0: item 0 refers to value 4294967296 of 1");
  refuse([](ProgramBuilder& b) { b.add_tensor_list({-1}); },
         "value 0: item 0 refers to value -1 of 1");
  refuse([](ProgramBuilder& b) { b.add_optional_tensor_list({-2}); },
         "value 0: item 0 refers to value -2 of 1");
}

TEST(Values, ListItemsHaveTheirKind) {
  const auto after_a_double = [](auto add) {
    return [add](ProgramBuilder& b) {
      b.add_double(1);
      add(b);
    };
  };
  refuse(after_a_double([](ProgramBuilder& b) { b.add_int_list({0}); }),
         "value 1: item 0 (value 0) is not an integer");
  refuse(after_a_double([](ProgramBuilder& b) { b.add_tensor_list({0}); }),
         "value 1: item 0 (value 0) is not a tensor");
  refuse(after_a_double([](ProgramBuilder& b) { b.add_optional_tensor_list({0}); }),
         "value 1: item 0 (value 0) is not a tensor");
  refuse(
      [](ProgramBuilder& b) {
        b.add_tensor_list({1});
        b.add_tensor();
      },
      "value 0: item 0 (value 1) comes after the list");
}

TEST(Tensors, ScalarsHaveNoDims) {
  const FileBytes file = [] {
    ProgramBuilder b;
    b.add_tensor({.sizes = {}});
    return b.finish();
  }();
  auto p = Program::parse(file);
  ASSERT_TRUE(p.ok()) << p.status().message();
  EXPECT_EQ(std::get<TensorRecord>(p->methods()[0].values[0]).sizes.rank(), 0U);
}

TEST(Tensors, DynamicOnesHaveTheirBound) {
  ProgramBuilder b;
  b.add_tensor({.sizes = {64}, .dynamism = pte::TensorShapeDynamism::DYNAMIC_BOUND});
  auto p = Program::parse(b.finish());
  ASSERT_TRUE(p.ok());
  EXPECT_TRUE(std::get<TensorRecord>(p->methods()[0].values[0]).dynamic);
}

TEST(Tensors, RefuseMissingShapes) {
  const std::vector<int32_t> sizes = {1};
  refuse(
      [](ProgramBuilder& b) {
        b.add_value(pte::KernelTypes::Tensor, pte::CreateTensor(b.fbb).Union());
      },
      "value 0: tensor has no sizes");
  refuse(
      [&](ProgramBuilder& b) {
        b.add_value(pte::KernelTypes::Tensor,
                    pte::CreateTensorDirect(b.fbb, pte::ScalarType::FLOAT, 0, &sizes).Union());
      },
      "value 0: tensor has no dim_order");
}

TEST(Tensors, RefuseShapes) {
  refuse_tensor({.sizes = {1, 2}, .dim_order = {{0}}},
                "value 0: rank mismatch: 2 sizes, 1 in dim_order");
  refuse_tensor({.sizes = {2, -1}}, "value 0: shape [2, -1] is negative");
  constexpr int32_t kMax = INT32_MAX;
  refuse_tensor({.sizes = {kMax, kMax, 4}}, "value 0: shape [2147483647, 2147483647, 4] overflows");
  refuse_tensor({.sizes = {0, kMax, kMax, 4}},
                "value 0: shape [0, 2147483647, 2147483647, 4] overflows");
  refuse_tensor({.dim_order = {{0, 0}}}, "value 0: invalid dim_order [0, 0]");
  refuse_tensor({.dim_order = {{0, 2}}}, "value 0: invalid dim_order [0, 2]");
  refuse_tensor({.dim_order = {{0, 255}}}, "value 0: invalid dim_order [0, 255]");
}

TEST(Tensors, UnsupportedOnesAreNamed) {
  unsupported_tensor({.sizes = std::vector<int32_t>(9, 1)}, "rank: expected at most 8, got 9");
  unsupported_tensor({.dtype = pte::ScalarType::QINT8}, "unsupported dtype QINT8");
  unsupported_tensor({.dtype = pte::ScalarType::FLOAT8E4M3FN}, "unsupported dtype FLOAT8E4M3FN");
  unsupported_tensor({.dtype = static_cast<pte::ScalarType>(9)}, "unsupported dtype complex64");
  unsupported_tensor({.dtype = static_cast<pte::ScalarType>(-1)}, "unsupported dtype number -1");
  unsupported_tensor({.storage_offset = 4}, "storage offset 4 is not supported");
  unsupported_tensor({.dynamism = pte::TensorShapeDynamism::DYNAMIC_UNBOUND},
                     "unbounded dynamic shapes are not supported");
  unsupported_tensor({.device = pte::DeviceType::CUDA}, "tensor placed on device type CUDA");
  unsupported_tensor({.device = static_cast<pte::DeviceType>(5)}, "tensor placed on device type 5");
}

TEST(Tensors, RefuseUnknownEnums) {
  refuse_tensor({.dynamism = static_cast<pte::TensorShapeDynamism>(3)},
                "value 0: unknown shape dynamism 3");
  refuse(
      [](ProgramBuilder& b) {
        const std::vector<int32_t> sizes;
        const std::vector<uint8_t> order;
        const auto extra = pte::CreateExtraTensorInfoDirect(
            b.fbb, 0, "w", static_cast<pte::TensorDataLocation>(2));
        b.add_value(pte::KernelTypes::Tensor,
                    pte::CreateTensorDirect(b.fbb, pte::ScalarType::FLOAT, 0, &sizes, &order, false,
                                            0, 0, 0, pte::TensorShapeDynamism::STATIC, extra)
                        .Union());
      },
      "value 0: unknown data location 2");
}

TEST(Tensors, RefusePlacements) {
  refuse_tensor({.buffer = 2}, "value 0: memory id 2 of 2");
  refuse(
      [](ProgramBuilder& b) {
        const std::vector<int32_t> sizes;
        const std::vector<uint8_t> order;
        const auto place = pte::CreateAllocationDetails(b.fbb, 0, 0, 0);
        b.add_value(pte::KernelTypes::Tensor,
                    pte::CreateTensorDirect(b.fbb, pte::ScalarType::FLOAT, 0, &sizes, &order, false,
                                            0, place)
                        .Union());
      },
      "value 0: memory id 0 of 2");
  refuse_tensor({.buffer = 1, .offset = 1001},
                "value 0: [1001, +24) exceeds planned buffer 1 (1024)");
  refuse_tensor({.buffer = 1, .offset = ~uint64_t{0}},
                "value 0: [18446744073709551615, +24) exceeds planned buffer 1 (1024)");
  EXPECT_TRUE(parse([](ProgramBuilder& b) { b.add_tensor({.buffer = 1, .offset = 1000}); }).ok());
}

TEST(Values, KindsHaveNames) {
  EXPECT_EQ(kind_name(ValueRecord(NullRecord{})), "null");
  EXPECT_EQ(kind_name(ValueRecord(int64_t{1})), "an integer");
  EXPECT_EQ(kind_name(ValueRecord(true)), "a bool");
  EXPECT_EQ(kind_name(ValueRecord(1.0)), "a double");
  EXPECT_EQ(kind_name(ValueRecord(std::string())), "a string");
  EXPECT_EQ(kind_name(ValueRecord(TensorRecord())), "a tensor");
  EXPECT_EQ(kind_name(ValueRecord(IntListRecord())), "a list of integers");
  EXPECT_EQ(kind_name(ValueRecord(DoubleListRecord())), "a list of doubles");
  EXPECT_EQ(kind_name(ValueRecord(BoolListRecord())), "a list of bools");
  EXPECT_EQ(kind_name(ValueRecord(TensorListRecord())), "a list of tensors");
  EXPECT_FALSE(is_list(ValueRecord(TensorRecord())));
  EXPECT_TRUE(is_list(ValueRecord(IntListRecord())));
}

}  // namespace
}  // namespace pteryx::program
