// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "pteryx/ops/strided.h"
#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

using Rule = std::function<double(double, double, double)>;
constexpr double kInf = std::numeric_limits<double>::infinity();

TestTensor reference(const TestTensor& c, const TestTensor& a, const TestTensor& b, DType out,
                     const Rule& f) {
  const Dims dims = *broadcast(*broadcast(c.dims, a.dims), b.dims);
  TestTensor y{out, dims, std::vector<double>(static_cast<size_t>(numel(dims)))};
  const std::array<Dims, 3> strides = {broadcast_strides(c.dims, dims),
                                       broadcast_strides(a.dims, dims),
                                       broadcast_strides(b.dims, dims)};
  for_each_index<3>(dims, strides, [&](int64_t i, const std::array<int64_t, 3>& at) {
    y.data[static_cast<size_t>(i)] =
        f(c.data[static_cast<size_t>(at[0])], a.data[static_cast<size_t>(at[1])],
          b.data[static_cast<size_t>(at[2])]);
  });
  return y;
}
double pick(double c, double a, double b) { return c != 0 ? a : b; }

struct Shapes3 {
  Dims c, a, b;
};
const std::vector<Shapes3> kShapes = {{{7, 33}, {7, 33}, {7, 33}},
                                      {{2, 1, 5}, {3, 1}, {}},
                                      {{}, {3, 5}, {5}},
                                      {{4, 1}, {}, {1, 3}},
                                      {{0, 3}, {3}, {1, 1}},
                                      {{}, {}, {}},
                                      {{2, 1, 2, 1, 3, 1, 2, 1}, {1, 2, 1, 3, 1, 2, 1, 2}, {2}}};

TEST(Where, BroadcastsThreeWaysForEveryType) {
  for (const Shapes3& s : kShapes) {
    for (const DType t : {DType::kF32, DType::kF16, DType::kI32, DType::kI64, DType::kBool,
                          DType::kU8, DType::kI8, DType::kF64, DType::kBF16}) {
      const TestTensor c = random(DType::kBool, s.c, 1);
      const TestTensor a = random(t, s.a, 2, -90, 90);
      const TestTensor b = random(t, s.b, 3, -90, 90);
      const TestTensor want = reference(c, a, b, t, pick);
      expect_op(Case("aten.where.self").in(c).in(a).in(b).out(t, want.dims), {want}, kExact);
    }
  }
}

TEST(Where, KeepsBitsThatArithmeticWouldNot) {
  const TestTensor c = {DType::kU8, {4}, {2, 0, 1, 0}};
  const TestTensor a = {DType::kF32, {4}, {1e-44, 1, kInf, 1}};
  const TestTensor b = {DType::kF32, {4}, {1, std::nan(""), 1, -kInf}};
  expect_op(Case("aten.where.self").in(c).in(a).in(b).out(DType::kF32, {4}),
            {{DType::kF32, {4}, {static_cast<double>(1e-44F), std::nan(""), kInf, -kInf}}}, kExact);
}

TEST(Where, PromotesMixedTypes) {
  struct Mix {
    DType a, b, y;
  };
  for (const Mix& m :
       {Mix{DType::kI32, DType::kF32, DType::kF32}, Mix{DType::kF16, DType::kF32, DType::kF32},
        Mix{DType::kU8, DType::kI32, DType::kI32}, Mix{DType::kI32, DType::kI64, DType::kI64},
        Mix{DType::kBool, DType::kF16, DType::kF16}}) {
    const TestTensor c = random(DType::kBool, {3, 5}, 1);
    const TestTensor a = random(m.a, {3, 5}, 2, 0, 90);
    const TestTensor b = random(m.b, {5}, 3, 0, 90);
    const TestTensor want = reference(c, a, b, m.y, pick);
    expect_op(Case("aten::where.self_out").in(c).in(a).in(b).out(m.y, {3, 5}), {want}, kExact);
  }
}

TEST(Where, MaskedFill) {
  for (const DType t :
       {DType::kF32, DType::kF16, DType::kI32, DType::kI64, DType::kBool, DType::kI8}) {
    for (const int64_t n : {1, 3, 6, 67}) {
      const TestTensor x = random(t, {2, n}, 1, -9, 9);
      const TestTensor mask = random(DType::kBool, {n}, 2);
      const TestTensor value = round_to({t, {}, {7}}, t);
      const TestTensor want = reference(mask, value, x, t, pick);
      expect_op(Case("aten.masked_fill.Scalar").in(x).in(mask).integer(7).out(t, {2, n}), {want},
                kExact);
      expect_op(Case("aten::masked_fill.Scalar_out").in(x).in(mask).number(7).out(t, {2, n}),
                {want}, kExact);
      expect_op(Case("aten.masked_fill.Tensor").in(x).in(mask).in(value).out(t, {2, n}), {want},
                kExact);
    }
  }
  const TestTensor x = {DType::kF32, {1, 2}, {1, 2}};  // x broadcasts too
  const TestTensor mask = {DType::kBool, {2, 1}, {1, 0}};
  expect_op(Case("aten.masked_fill.Scalar").in(x).in(mask).number(-kInf).out(DType::kF32, {2, 2}),
            {{DType::kF32, {2, 2}, {-kInf, -kInf, 1, 2}}}, kExact);
}

TEST(Where, ClampByTensors) {
  const Rule both = [](double x, double lo, double hi) { return std::fmin(std::fmax(x, lo), hi); };
  for (const DType t : {DType::kF32, DType::kF16, DType::kI32, DType::kI64}) {
    const TestTensor x = random(t, {4, 1, 9}, 1, -50, 50);
    const TestTensor lo = random(t, {3, 1}, 2, -50, 20);
    const TestTensor hi = random(t, {9}, 3, -20, 50);
    expect_op(Case("aten.clamp.Tensor").in(x).in(lo).in(hi).out(t, {4, 3, 9}),
              {reference(x, lo, hi, t, both)}, kExact);
    expect_op(Case("aten.clamp.Tensor").in(x).in(lo).none().out(t, {4, 3, 9}),
              {reference(x, lo, lo, t, [](double v, double l, double) { return std::fmax(v, l); })},
              kExact);
    expect_op(Case("aten.clamp.Tensor").in(x).none().in(hi).out(t, {4, 1, 9}),
              {reference(x, hi, hi, t, [](double v, double h, double) { return std::fmin(v, h); })},
              kExact);
  }
}

TEST(Where, Refuses) {
  const TestTensor x = random(DType::kF32, {2, 3});
  expect_error(
      Case("aten.where.self").in(random(DType::kBool, {2, 4})).in(x).in(x).out(DType::kF32, {2, 3}),
      "a [2, 3] does not broadcast with [2, 4]");
  expect_error(Case("aten.where.self").in(x).in(x).in(x).out(DType::kF32, {2, 3}),
               "condition (value 0) type: expected bool, u8, got f32");
}

}  // namespace
}  // namespace pteryx::ops::testing
