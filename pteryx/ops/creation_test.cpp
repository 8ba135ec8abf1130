// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const std::vector<DType> kTypes = {DType::kF32, DType::kF16, DType::kI32, DType::kI64, DType::kBool,
                                   DType::kU8,  DType::kI8,  DType::kF64, DType::kBF16};

TestTensor filled(DType t, const Dims& dims, double v) {
  return make(t, dims, [v](int64_t) { return v; });
}
Case& with_factory(Case& c) { return c.none().none().none().flag(false); }

TEST(Creation, FillsEveryTypeAndShape) {
  for (const DType t : kTypes) {
    for (const Dims& d : {Dims{}, Dims{3}, Dims{0, 2}, Dims{2, 67}, Dims{1, 2, 1, 2, 1, 2, 1, 3}}) {
      const std::vector<int64_t> size(d.begin(), d.end());
      Case full("aten.full.default");
      expect_op(with_factory(full.ints(size).integer(3)).out(t, d), {filled(t, d, 3)}, kExact);
      expect_op(Case("aten::zeros.out").ints(size).none().none().none().none().out(t, d),
                {filled(t, d, 0)}, kExact);
      Case ones("aten.ones.default");
      expect_op(with_factory(ones.live_ints(size)).out(t, d), {filled(t, d, 1)}, kExact);
    }
  }
}

TEST(Creation, LikeAnother) {
  const TestTensor x = random(DType::kF32, {3, 5});
  Case full("aten.full_like.default");
  expect_op(with_factory(full.in(x).number(-kInf)).none().out(DType::kF32, {3, 5}),
            {filled(DType::kF32, {3, 5}, -kInf)}, kExact);
  Case zeros("aten.zeros_like.default");
  expect_op(with_factory(zeros.in(x)).none().out(DType::kI32, {3, 5}),
            {filled(DType::kI32, {3, 5}, 0)}, kExact);
  Case ones("aten.ones_like.default");
  expect_op(with_factory(ones.in(x)).none().out(DType::kBool, {3, 5}),
            {filled(DType::kBool, {3, 5}, 1)}, kExact);
  expect_op(Case("aten::fill.Scalar_out").in(x).number(0.5).out(DType::kF32, {3, 5}),
            {filled(DType::kF32, {3, 5}, 0.5)}, kExact);
}

TEST(Creation, ScalarTensorOfAnyScalar) {
  for (const DType t : kTypes) {
    Case literal("aten.scalar_tensor.default");
    expect_op(with_factory(literal.number(1)).out(t, {}), {filled(t, {}, 1)}, kExact);
    Case live("aten.scalar_tensor.default");
    expect_op(with_factory(live.live(5)).out(t, {}), {filled(t, {}, 5)}, kExact);
    Case flag("aten.scalar_tensor.default");
    expect_op(with_factory(flag.flag(true)).out(t, {}), {filled(t, {}, 1)}, kExact);
  }
  Case half("aten.scalar_tensor.default");
  expect_op(with_factory(half.number(0.5)).out(DType::kBool, {}), {filled(DType::kBool, {}, 1)},
            kExact);
}

struct Range {
  double start, end, step;
  int64_t items;
};

TEST(Creation, CountsUpAndDown) {
  for (const Range& r : {Range{0, 7, 1, 7}, Range{2, 11, 3, 3}, Range{5, -5, -2, 5},
                         Range{4, 4, 1, 0}, Range{0, 67, 1, 67}}) {
    for (const DType t :
         {DType::kF32, DType::kF16, DType::kI32, DType::kI64, DType::kU8, DType::kF64}) {
      const TestTensor want =
          make(t, {r.items}, [&](int64_t i) { return r.start + static_cast<double>(i) * r.step; });
      Case c("aten.arange.start_step");
      with_factory(c.integer(static_cast<int64_t>(r.start))
                       .live(static_cast<int64_t>(r.end))
                       .number(r.step));
      expect_op(c.out(t, {r.items}), {want}, kExact);
    }
  }
  const TestTensor third =
      make(DType::kF32, {4}, [](int64_t i) { return 0.5 + 0.3 * static_cast<double>(i); });
  Case c("aten.arange.start_step");
  expect_op(with_factory(c.number(0.5).number(1.5).number(0.3)).out(DType::kF32, {4}), {third},
            {0, 2e-7});
}

TEST(Creation, ShorterFormsOfArange) {
  const TestTensor want = make(DType::kI32, {5}, [](int64_t i) { return static_cast<double>(i); });
  Case end("aten.arange.default");
  expect_op(with_factory(end.integer(5)).out(DType::kI32, {5}), {want}, kExact);
  Case start("aten.arange.start");
  expect_op(with_factory(start.integer(0).integer(5)).out(DType::kI32, {5}), {want}, kExact);
}

TEST(Creation, Identity) {
  for (const DType t : {DType::kF32, DType::kF16, DType::kBool, DType::kI64}) {
    const auto unit = [](int64_t width) {
      return [width](int64_t i) { return i / width == i % width ? 1.0 : 0.0; };
    };
    Case square("aten.eye.default");
    expect_op(with_factory(square.integer(5)).out(t, {5, 5}), {make(t, {5, 5}, unit(5))}, kExact);
    Case wide("aten.eye.m");
    expect_op(with_factory(wide.integer(2).integer(7)).out(t, {2, 7}), {make(t, {2, 7}, unit(7))},
              kExact);
  }
}

TEST(Creation, Refuses) {
  Case backwards("aten.arange.start_step");
  expect_error(with_factory(backwards.integer(0).integer(5).integer(-1)).out(DType::kI32, {5}),
               "no range from 0 to 5 in steps of -1");
  Case still("aten.arange.start_step");
  expect_error(with_factory(still.integer(0).integer(5).integer(0)).out(DType::kI32, {5}),
               "no range from 0 to 5 in steps of 0");
  Case negative("aten.zeros.default");
  expect_error(with_factory(negative.live_ints({2, -3})).out(DType::kF32, {2, 3}),
               "size [2, -3] has a negative dim");
  Case large("aten.zeros.default");
  expect_error(with_factory(large.live_ints({9})).out(DType::kF32, {2}),
               "the file allows [4], the inputs give [9]");
}

}  // namespace
}  // namespace pteryx::ops::testing
