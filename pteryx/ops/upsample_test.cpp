// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

// One axis as a matrix of shares: result o is the sum over i of share(o, i) * x[i].
using Share = std::function<double(int64_t o, int64_t i)>;

TestTensor resize(const TestTensor& x, int64_t out_h, int64_t out_w, const Share& h,
                  const Share& w) {
  const int64_t in_h = x.dims[2];
  const int64_t in_w = x.dims[3];
  TestTensor y{x.dtype, {x.dims[0], x.dims[1], out_h, out_w}, {}};
  for (int64_t i = 0; i < numel(y.dims); ++i) {
    double sum = 0;
    for (int64_t r = 0; r < in_h; ++r) {
      for (int64_t c = 0; c < in_w; ++c) {
        sum += h(i / out_w % out_h, r) * w(i % out_w, c) *
               x.data[static_cast<size_t>((i / out_w / out_h * in_h + r) * in_w + c)];
      }
    }
    y.data.push_back(sum);
  }
  return y;
}

Share nearest(int64_t in, double step) {
  return [=](int64_t o, int64_t i) {
    return i == std::min(static_cast<int64_t>(static_cast<double>(o) * step), in - 1) ? 1.0 : 0.0;
  };
}
Share linear(int64_t in, int64_t out, double step, bool align) {
  return [=](int64_t o, int64_t i) {
    double at = (static_cast<double>(o) + 0.5) * step - 0.5;
    if (align)
      at = out > 1 ? static_cast<double>(o * (in - 1)) / static_cast<double>(out - 1) : 0.0;
    at = std::min(std::max(at, 0.0), static_cast<double>(in - 1));
    return std::max(0.0, 1.0 - std::fabs(at - static_cast<double>(i)));
  };
}
// A triangle of half width max(step, 1), cut at the edges of the image and brought to a sum of 1.
Share triangle(int64_t in, double step) {
  return [=](int64_t o, int64_t i) {
    const auto part = [&](int64_t k) {
      const double d = static_cast<double>(k) + 0.5 - (static_cast<double>(o) + 0.5) * step;
      return std::max(0.0, 1.0 - std::fabs(d) / std::max(step, 1.0));
    };
    double total = 0;
    for (int64_t k = 0; k < in; ++k) total += part(k);
    return part(i) / total;
  };
}

struct Form {
  Dims x;
  std::vector<int64_t> size;  // or
  std::vector<double> factors;
};
const std::vector<Form> kForms = {{{1, 3, 5, 4}, {}, {2.0, 3.0}}, {{2, 2, 4, 6}, {7, 3}, {}},
                                  {{1, 1, 7, 5}, {}, {1.5, 2.5}}, {{1, 2, 6, 7}, {}, {0.5, 0.4}},
                                  {{1, 3, 1, 1}, {4, 5}, {}},     {{1, 2, 3, 3}, {1, 1}, {}},
                                  {{0, 2, 3, 3}, {6, 6}, {}},     {{1, 1, 9, 16}, {9, 16}, {}}};

struct Sizes {
  int64_t h, w;
  double step_h, step_w;
};
Sizes sizes(const Form& f) {
  const auto in_h = static_cast<double>(f.x[2]);
  const auto in_w = static_cast<double>(f.x[3]);
  if (!f.size.empty()) {
    return {f.size[0], f.size[1], in_h / static_cast<double>(f.size[0]),
            in_w / static_cast<double>(f.size[1])};
  }
  return {static_cast<int64_t>(in_h * f.factors[0]), static_cast<int64_t>(in_w * f.factors[1]),
          1 / f.factors[0], 1 / f.factors[1]};
}

Case& size_args(Case& c, const Form& f) { return f.size.empty() ? c.none() : c.ints(f.size); }
Case& factor_args(Case& c, const Form& f) {
  return f.factors.empty() ? c.none() : c.numbers(f.factors);
}

TEST(Upsample, NearestMatchesReference) {
  for (const Form& f : kForms) {
    SCOPED_TRACE(to_string(f.x));
    const Sizes s = sizes(f);
    for (const DType t : {DType::kF32, DType::kF16, DType::kU8, DType::kI64}) {
      const TestTensor x = random(t, f.x, 1, 0, 100);
      const TestTensor y =
          resize(x, s.h, s.w, nearest(f.x[2], s.step_h), nearest(f.x[3], s.step_w));
      Case c("aten.upsample_nearest2d.vec");
      size_args(c.in(x), f);
      expect_op(factor_args(c, f).out(t, y.dims), {y}, kExact);
    }
  }
}

TEST(Upsample, NearestTakesTheElementPyTorchTakes) {
  // 1 / 3 is below a third in f32 no longer: 3 * f32(1 / 3) rounds to 1, so result 3 shows
  // element 1.
  const TestTensor x =
      make(DType::kF32, {1, 1, 1, 10}, [](int64_t i) { return static_cast<double>(i); });
  const TestTensor y =
      make(DType::kF32, {1, 1, 1, 30}, [](int64_t i) { return static_cast<double>(i / 3); });
  expect_op(
      Case("aten.upsample_nearest2d.vec").in(x).none().numbers({1, 3}).out(DType::kF32, y.dims),
      {y}, kExact);
}

TEST(Upsample, AFactorThatChangesNoSizeChangesNothing) {
  const TestTensor x = random(DType::kF32, {1, 2, 3, 3});
  expect_op(
      Case("aten.upsample_nearest2d.vec").in(x).none().numbers({1.3, 1}).out(DType::kF32, x.dims),
      {x}, kExact);
  expect_op(Case("aten.upsample_bilinear2d.vec")
                .in(x)
                .none()
                .flag(false)
                .numbers({1, 1.3})
                .out(DType::kF32, x.dims),
            {x}, kExact);
}

TEST(Upsample, BilinearMatchesReference) {
  for (const Form& f : kForms) {
    SCOPED_TRACE(to_string(f.x));
    const Sizes s = sizes(f);
    for (const DType t : {DType::kF32, DType::kF16}) {
      for (const bool align : {false, true}) {
        const TestTensor x = random(t, f.x);
        const TestTensor y = resize(x, s.h, s.w, linear(f.x[2], s.h, s.step_h, align),
                                    linear(f.x[3], s.w, s.step_w, align));
        Case c("aten.upsample_bilinear2d.vec");
        size_args(c.in(x), f).flag(align);
        expect_op(factor_args(c, f).out(t, y.dims), {y}, tolerance(t));
      }
    }
  }
}

TEST(Upsample, AntialiasMatchesReference) {
  for (const Form& f : kForms) {
    if (f.size.empty()) continue;
    SCOPED_TRACE(to_string(f.x));
    const Sizes s = sizes(f);
    for (const DType t : {DType::kF32, DType::kF16}) {
      const TestTensor x = random(t, f.x);
      const TestTensor y =
          resize(x, s.h, s.w, triangle(f.x[2], s.step_h), triangle(f.x[3], s.step_w));
      expect_op(Case("aten._upsample_bilinear2d_aa.default")
                    .in(x)
                    .ints(f.size)
                    .flag(false)
                    .none()
                    .none()
                    .out(t, y.dims),
                {y}, tolerance(t));
    }
  }
}

TEST(Upsample, SizeFormTakesAFactorPerAxis) {
  const Form f{{1, 2, 4, 6}, {}, {2.0, 1.5}};
  const Sizes s = sizes(f);
  const TestTensor x = random(DType::kF32, f.x);
  const TestTensor y =
      resize(x, s.h, s.w, linear(4, s.h, s.step_h, false), linear(6, s.w, s.step_w, false));
  expect_op(Case("aten.upsample_bilinear2d.default")
                .in(x)
                .ints({8, 9})
                .flag(false)
                .number(2)
                .number(1.5)
                .out(DType::kF32, y.dims),
            {y}, tolerance(DType::kF32));
  const TestTensor z = resize(x, s.h, s.w, nearest(4, s.step_h), nearest(6, s.step_w));
  expect_op(Case("aten.upsample_nearest2d.default")
                .in(x)
                .ints({8, 9})
                .number(2)
                .none()
                .out(DType::kF32, z.dims),
            {z}, kExact);
}

TEST(Upsample, SaysWhatDoesNotFit) {
  const TestTensor x = random(DType::kF32, {1, 1, 2, 2});
  const auto nearest_case = [&] { return Case("aten.upsample_nearest2d.vec").in(x); };
  expect_error(nearest_case().none().none().out(DType::kF32, {1, 1, 4, 4}),
               "neither output_size nor scale_factors is given");
  expect_error(nearest_case().ints({4}).none().out(DType::kF32, {1, 1, 4, 4}),
               "output_size (value 1) length: expected 2, got 1");
  expect_error(nearest_case().none().numbers({2}).out(DType::kF32, {1, 1, 4, 4}),
               "scale_factors (value 2) length: expected 2, got 1");
  expect_error(nearest_case().none().numbers({2, -1}).out(DType::kF32, {1, 1, 4, 4}),
               "scale_factors (value 2) entry: expected more than 0, got -1");
  expect_error(nearest_case().ints({-4, 4}).none().out(DType::kF32, {1, 1, 4, 4}),
               "output_size (value 1) entry: expected 0 or more, got -4");
}

}  // namespace
}  // namespace pteryx::ops::testing
