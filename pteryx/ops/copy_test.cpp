// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const std::vector<DType> kTypes = {DType::kF32,  DType::kF16, DType::kI32, DType::kI64,
                                   DType::kBool, DType::kU8,  DType::kI8,  DType::kF64,
                                   DType::kI16,  DType::kBF16};

// PyTorch's conversion for values inside every type's range.
TestTensor converted(const TestTensor& x, DType to) {
  TestTensor y{to, x.dims, {}};
  for (const double v : x.data) {
    y.data.push_back(to == DType::kBool ? (v != 0 ? 1 : 0) : (is_float(to) ? v : std::trunc(v)));
  }
  return round_to(y, to);
}
Case to_copy(const TestTensor& x, DType to) {
  Case c("aten._to_copy.default");
  return c.in(x).none().none().none().none().flag(false).none().out(to, x.dims);
}

TEST(Copy, EveryTypeToEveryOther) {
  for (const DType from : kTypes) {
    for (const DType to : kTypes) {
      const TestTensor x = random(from, {3, 7}, 1, 0, 120);
      expect_op(to_copy(x, to), {converted(x, to)}, kExact);
    }
  }
}

TEST(Copy, EveryShape) {
  for (const Dims& d : {Dims{}, Dims{1}, Dims{0, 3}, Dims{67}, Dims{2, 1, 3, 1, 2, 1, 2, 3}}) {
    for (const DType t : {DType::kF32, DType::kF16, DType::kBool}) {
      const TestTensor x = random(t, d, 2, 0, 2);
      expect_op(Case("pteryx.copy").in(x).out(t, d), {x}, kExact);
      expect_op(Case("pteryx.copy").in(x).out(DType::kI32, d), {converted(x, DType::kI32)}, kExact);
    }
  }
}

TEST(Copy, FloatsTruncateAndIntegersWrap) {
  const TestTensor x = {DType::kF32, {7}, {2.9, -2.9, 0.5, -0.5, 3e9, -3e9, std::nan("")}};
  expect_op(to_copy(x, DType::kI32),
            {{DType::kI32, {7}, {2, -2, 0, 0, 2147483647, -2147483648.0, 0}}}, kExact);
  const TestTensor i = {DType::kI32, {4}, {300, -1, 128, -129}};
  expect_op(to_copy(i, DType::kU8), {{DType::kU8, {4}, {44, 255, 128, 127}}}, kExact);
  expect_op(to_copy(i, DType::kI8), {{DType::kI8, {4}, {44, -1, -128, 127}}}, kExact);
  const TestTensor big = {DType::kI64, {2}, {4294967303.0, -1}};
  expect_op(to_copy(big, DType::kI32), {{DType::kI32, {2}, {7, -1}}}, kExact);
}

TEST(Copy, BoolIsDifferenceFromZero) {
  for (const DType t : {DType::kF32, DType::kF16, DType::kF64}) {
    const TestTensor x = {t, {6}, {0, -0.0, 0.25, -3, std::nan(""), kInf}};
    expect_op(to_copy(x, DType::kBool), {{DType::kBool, {6}, {0, 0, 1, 1, 1, 1}}}, kExact);
  }
  const TestTensor x = {DType::kI32, {3}, {0, 256, -1}};
  expect_op(to_copy(x, DType::kBool), {{DType::kBool, {3}, {0, 1, 1}}}, kExact);
}

TEST(Copy, HalvesRoundToNearest) {
  const TestTensor x =
      make(DType::kF32, {97}, [](int64_t i) { return 1.0 + static_cast<double>(i) * 0x1p-13; });
  expect_op(to_copy(x, DType::kF16), {round_to({DType::kF16, {97}, x.data}, DType::kF16)}, kExact);
  const TestTensor y = {DType::kF32, {4}, {1e-7, 6.1e-5, -65504, kInf}};
  expect_op(to_copy(y, DType::kF16), {round_to({DType::kF16, {4}, y.data}, DType::kF16)}, kExact);
}

TEST(Copy, NarrowingAtABoundaryIsChecked) {
  const TestTensor x = {DType::kI64, {2, 2}, {1, -2147483648.0, 2147483647, 2147483648.0}};
  const auto result = run(Case("pteryx.copy").in(x).out(DType::kI32, {2, 2}), Where::kCpu);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), Code::kInvalidArgument);
  EXPECT_NE(result.status().message().find(
                "(value 0): input value 2147483648 at index 3 does not fit i32"),
            std::string_view::npos)
      << result.status().message();
  const TestTensor fine = {DType::kI64, {3}, {-2147483648.0, 2147483647, 0}};
  expect_op(Case("pteryx.copy").in(fine).out(DType::kI32, {3}), {{DType::kI32, {3}, fine.data}},
            kExact);
}

TEST(Copy, DimOrderIsIgnored) {
  const TestTensor x = random(DType::kI32, {2, 3}, 1, -9, 9);
  Case c("dim_order_ops._to_dim_order_copy.default");
  c.in(x).none().none().none().none().flag(false).ints({1, 0});
  expect_op(c.out(DType::kF32, {2, 3}), {converted(x, DType::kF32)}, kExact);
}

TEST(Copy, BroadcastsIntoTheDestination) {
  for (const DType from : {DType::kF32, DType::kF16, DType::kI32, DType::kBool}) {
    for (const DType to : {DType::kF32, DType::kF16, DType::kI32, DType::kU8, DType::kI64}) {
      const TestTensor self = random(to, {2, 3, 5}, 1, 0, 9);
      const TestTensor src = random(from, {3, 1}, 2, 0, 9);
      const TestTensor small = converted(src, to);
      const TestTensor want = make(
          to, self.dims, [&](int64_t i) { return small.data[static_cast<size_t>(i / 5 % 3)]; });
      expect_op(Case("aten.copy.default").in(self).in(src).flag(false).out(to, self.dims), {want},
                kExact);
      expect_op(Case("aten::copy_").in(self).in(src).flag(false).in_place(), {want}, kExact);
    }
  }
  const TestTensor value = {DType::kF32, {}, {2.5}};
  expect_op(
      Case("aten.fill.Tensor").in(random(DType::kF32, {2, 3})).in(value).out(DType::kF32, {2, 3}),
      {make(DType::kF32, {2, 3}, [](int64_t) { return 2.5; })}, kExact);
  expect_error(Case("aten.copy.default")
                   .in(value)
                   .in(random(DType::kF32, {2}))
                   .flag(false)
                   .out(DType::kF32, {}),
               "src [2] does not broadcast to []");
}

}  // namespace
}  // namespace pteryx::ops::testing
