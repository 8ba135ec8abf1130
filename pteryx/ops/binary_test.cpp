// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include <gtest/gtest.h>

#include "pteryx/ops/strided.h"
#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

using Rule = std::function<double(double, double)>;

TestTensor reference(const TestTensor& a, const TestTensor& b, DType out, const Rule& f) {
  const Dims dims = *broadcast(a.dims, b.dims);
  TestTensor y{out, dims, std::vector<double>(static_cast<size_t>(numel(dims)))};
  const std::array<Dims, 2> strides = {broadcast_strides(a.dims, dims),
                                       broadcast_strides(b.dims, dims)};
  for_each_index<2>(dims, strides, [&](int64_t i, const std::array<int64_t, 2>& at) {
    y.data[static_cast<size_t>(i)] =
        f(a.data[static_cast<size_t>(at[0])], b.data[static_cast<size_t>(at[1])]);
  });
  return y;
}

const std::vector<std::pair<Dims, Dims>> kShapes = {
    {{7, 33}, {7, 33}},
    {{2, 3, 1, 5}, {4, 1}},
    {{}, {3, 5}},
    {{5}, {}},
    {{1}, {1}},
    {{0, 3}, {1, 3}},
    {{2, 1, 2, 1, 3, 1, 2, 1}, {1, 2, 1, 3, 1, 2, 1, 2}}};

TEST(Binary, ArithmeticMatchesReferenceForEveryShapeAndType) {
  for (const auto& [da, db] : kShapes) {
    for (const DType t : {DType::kF32, DType::kF16, DType::kI32, DType::kI64, DType::kF64}) {
      const TestTensor a = random(t, da, 1, -9, 9);
      const TestTensor b = random(t, db, 2, -9, 9);
      const Dims dims = *broadcast(da, db);
      Tolerance tol = tolerance(t);
      if (t == DType::kF16) tol = {1e-2, 2e-3};
      expect_op(Case("aten.add.Tensor").in(a).in(b).integer(2).out(t, dims),
                {reference(a, b, t, [](double x, double y) { return x + 2 * y; })}, tol);
      expect_op(Case("aten.mul.Tensor").in(a).in(b).out(t, dims),
                {reference(a, b, t, [](double x, double y) { return x * y; })}, tol);
      expect_op(Case("aten.minimum.default").in(a).in(b).out(t, dims),
                {reference(a, b, t, [](double x, double y) { return std::min(x, y); })}, tol);
      expect_op(
          Case("aten.lt.Tensor").in(a).in(b).out(DType::kBool, dims),
          {reference(a, b, DType::kBool, [](double x, double y) { return x < y ? 1.0 : 0.0; })},
          kExact);
    }
  }
}

TEST(Binary, GatesMatchReference) {
  const Rule gate = [](double x, double y) { return x / (1 + std::exp(-x)) * y; };
  for (const auto& [da, db] : kShapes) {
    for (const DType t : {DType::kF32, DType::kF16}) {
      const TestTensor a = random(t, da, 1, -9, 9);
      const TestTensor b = random(t, db, 2, -9, 9);
      const Dims dims = *broadcast(da, db);
      expect_op(Case("pteryx.silu_mul").in(a).in(b).out(t, dims), {reference(a, b, t, gate)},
                t == DType::kF16 ? Tolerance{1e-3, 2e-3} : Tolerance{1e-5, 1e-5});
    }
  }
}

TEST(Binary, VectorsOfTheCpuTakeFloats) {
  const Dims dims = {3, 367};
  for (const DType ta : {DType::kF32, DType::kF16}) {
    for (const DType tb : {DType::kF32, DType::kF16}) {
      for (const Dims& db : {dims, Dims{3, 1}, Dims{367}, Dims{}}) {
        const TestTensor a = random(ta, dims, 1, 1, 2);
        const TestTensor b = random(tb, db, 2, 1, 2);
        for (const char* name : {"aten.mul.Tensor", "aten.div.Tensor", "aten.minimum.default",
                                 "aten.maximum.default", "pteryx.silu_mul"}) {
          const Case c = Case(name).in(a).in(b).out(ta, dims);
          EXPECT_TRUE(is_fast(c)) << name;
          const auto want = run(c, Where::kCpu);
          const auto got = run(c, Where::kFast);
          ASSERT_TRUE(want.ok() && got.ok());
          EXPECT_EQ(compare(*got, *want, {0, ta == DType::kF16 ? 1e-3 : 1e-6}), "") << name;
        }
      }
    }
  }
}

TEST(Binary, RoundingModesOfDivision) {
  const TestTensor a =
      make(DType::kI32, {6}, [](int64_t i) { return static_cast<double>(i * 5 - 13); });
  const TestTensor b = make(DType::kI32, {6}, [](int64_t i) { return i % 2 == 0 ? 3.0 : -4.0; });
  expect_op(Case("aten.div.Tensor_mode").in(a).in(b).text("floor").out(DType::kI32, {6}),
            {reference(a, b, DType::kI32, [](double x, double y) { return std::floor(x / y); })},
            kExact);
  expect_op(Case("aten.div.Tensor_mode").in(a).in(b).text("trunc").out(DType::kI32, {6}),
            {reference(a, b, DType::kI32, [](double x, double y) { return std::trunc(x / y); })},
            kExact);
  expect_op(Case("aten.div.Tensor").in(a).in(b).out(DType::kF32, {6}),
            {reference(a, b, DType::kF32, [](double x, double y) { return x / y; })}, {1e-6, 1e-6});
  expect_error(Case("aten.div.Tensor_mode").in(a).in(b).text("up").out(DType::kI32, {6}),
               "rounding_mode: expected floor, trunc or None, got 'up'");
}

TEST(Binary, PowersOfNegativeBases) {
  const TestTensor x =
      make(DType::kF32, {9}, [](int64_t i) { return static_cast<double>(i) - 4.0; });
  for (const double e : {2.0, 3.0, 4.0, 5.0, 0.0, 1.0, -2.0, 0.5, 1.5}) {
    TestTensor y = x;
    for (double& v : y.data) v = std::pow(v, e);
    expect_op(Case("aten.pow.Tensor_Scalar").in(x).number(e).out(DType::kF32, {9}), {y},
              {1e-5, 2e-5});
  }
}

TEST(Binary, PowersOfAScalarBase) {
  for (const DType t : {DType::kF32, DType::kF16, DType::kF64}) {
    const TestTensor x =
        make(t, {3, 5}, [](int64_t i) { return static_cast<double>(i) * 0.125 - 1; });
    for (const double base : {10000.0, 2.0, 0.5, 1.0, 0.0, -2.0}) {
      TestTensor y = round_to(x, t);
      for (double& v : y.data) v = std::pow(base, v);
      const bool far = t == DType::kF16 && base == 10000;
      expect_op(Case("aten.pow.Scalar").number(base).in(x).out(far ? DType::kF32 : t, {3, 5}), {y},
                t == DType::kF16 ? Tolerance{1e-3, 2e-3} : Tolerance{1e-6, 2e-5});
    }
  }
  const TestTensor e = make(DType::kI32, {6}, [](int64_t i) { return static_cast<double>(i); });
  TestTensor y = e;
  for (double& v : y.data) v = std::pow(-3, v);
  expect_op(Case("aten.pow.Scalar").integer(-3).in(e).out(DType::kI32, {6}), {y}, kExact);
  for (double& v : y.data) v = std::pow(1.5, std::log(std::fabs(v)) / std::log(3));
  y.dtype = DType::kF32;
  expect_op(Case("aten.pow.Scalar").number(1.5).in(e).out(DType::kF32, {6}), {y}, {1e-6, 1e-5});
}

TEST(Binary, ScalarOperandMayBeIntOrFloat) {
  const TestTensor x = random(DType::kI32, {11}, 3, -5, 5);
  TestTensor y = x;
  for (double& v : y.data) v = v > 0.5 ? 1 : 0;
  y.dtype = DType::kBool;
  expect_op(Case("aten.gt.Scalar").in(x).number(0.5).out(DType::kBool, {11}), {y}, kExact);
  TestTensor z = x;
  for (double& v : z.data) v = v + 3 * 2;
  expect_op(Case("aten.add.Scalar").in(x).integer(3).integer(2).out(DType::kI32, {11}), {z},
            kExact);
}

TEST(Binary, LogicOnBytesOfAnyCount) {
  for (const int64_t n : {1, 2, 3, 4, 5, 67}) {
    const TestTensor a = random(DType::kBool, {n}, 4);
    const TestTensor b = random(DType::kBool, {n}, 5);
    expect_op(Case("aten.logical_and.default").in(a).in(b).out(DType::kBool, {n}),
              {reference(a, b, DType::kBool,
                         [](double x, double y) { return x != 0 && y != 0 ? 1.0 : 0.0; })},
              kExact);
    expect_op(Case("aten.bitwise_or.Tensor").in(a).in(b).out(DType::kBool, {n}),
              {reference(a, b, DType::kBool,
                         [](double x, double y) { return x != 0 || y != 0 ? 1.0 : 0.0; })},
              kExact);
  }
}

TEST(Binary, RefusesShapesThatDoNotBroadcast) {
  expect_error(Case("aten.mul.Tensor")
                   .in(random(DType::kF32, {2, 3}))
                   .in(random(DType::kF32, {2, 4}))
                   .out(DType::kF32, {2, 3}),
               "a [2, 3] and b [2, 4] do not broadcast");
}

}  // namespace
}  // namespace pteryx::ops::testing
