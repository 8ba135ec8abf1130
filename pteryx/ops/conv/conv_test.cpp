// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/conv_cases.h"

namespace pteryx::ops::testing::conv_cases {
namespace {

TEST(Conv, OneDimension) {
  check({{{1, 3, 10}, {4, 3, 3}},
         {{2, 4, 11}, {6, 2, 3}, {2}, {1}, {1}, 2},
         {{1, 4, 13}, {4, 1, 5}, {1}, {4}, {2}, 4},
         {{1, 5, 7}, {9, 5, 1}},
         {{3, 8}, {2, 3, 3}, {1}, {1}}});
}

TEST(Conv, TwoDimensions) {
  check({{{1, 3, 6, 5}, {4, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}},
         {{2, 3, 9, 10}, {5, 3, 3, 2}, {2, 1}, {1, 0}, {1, 2}, 1, false},
         {{1, 4, 8, 8}, {8, 2, 3, 3}, {2}, {1}, {1}, 2},
         {{1, 6, 7, 7}, {3, 2, 1, 5}, {1}, {0, 2}, {1}, 3},
         {{1, 2, 12, 9}, {3, 2, 3, 3}, {3, 2}, {2, 3}, {2, 3}},
         {{4, 5, 6}, {2, 4, 2, 2}},  // without a batch
         {{1, 1, 1, 1}, {1, 1, 1, 1}},
         {{1, 2, 2, 2}, {3, 2, 5, 5}, {1}, {2}},  // kernel wider than the input
         {{0, 2, 4, 4}, {3, 2, 3, 3}}});
}

TEST(Conv, Winograd) {
  const std::vector<Form> forms = {{{2, 5, 7, 9}, {6, 5, 3, 3}, {1}, {1}},
                                   {{1, 17, 12, 8}, {8, 17, 3, 3}, {1}, {0, 2}},
                                   {{1, 3, 4, 6}, {70, 3, 3, 3}, {1}, {3}, {1}, 1, false}};
  for (const Form& f : forms) {
    const Operands o = operands(f, DType::kF32);
    const auto routes = gpu_routes(make_case("aten.convolution.default", f, o.x, o.w, o.bias)
                                       .out(DType::kF32, reference(f, o.x, o.w, o.bias).dims));
    ASSERT_TRUE(routes.ok()) << routes.status().message();
    for (const char* route : {"winograd2", "winograd4"})
      EXPECT_NE(std::ranges::find(*routes, route), routes->end()) << route;
  }
  check(forms);
  check(forms, DType::kF16);
}

// Weights that are no constants are put in order in every run.
TEST(Conv, WeightsMayBeComputed) {
  for (const Form& f : {Form{{1, 20, 9, 8}, {35, 20, 3, 3}}, Form{{2, 40, 3, 4}, {66, 40, 1, 1}}}) {
    const Operands o = operands(f, DType::kF32);
    const TestTensor want = reference(f, o.x, o.w, o.bias);
    Case c("aten.convolution.default");
    c.in(o.x).in(o.w).in(o.bias).ints(f.stride).ints(f.padding).ints(f.dilation).flag(false);
    expect_op(c.ints({0}).integer(1).out(DType::kF32, want.dims), {want}, kFloat);
  }
}

// Such a weight counts where it meets x, and not where it meets what is around it.
TEST(Conv, WeightsMayBeInfinite) {
  for (const Form& f : {Form{{1, 3, 6, 5}, {4, 3, 3, 3}, {1}, {1}, {1}},
                        Form{{2, 4, 9, 9}, {4, 1, 3, 3}, {2}, {2}, {1}, 4},
                        Form{{1, 2, 4, 4}, {3, 2, 5, 5}, {1}, {2}}}) {
    for (const size_t at : {0UL, 4UL, 13UL, 25UL}) {
      Operands o = operands(f, DType::kF32);
      o.w.data[at] = at == 4 ? std::nan("") : std::numeric_limits<double>::infinity();
      const Case c = make_case("aten.convolution.default", f, o.x, o.w, o.bias)
                         .out(DType::kF32, reference(f, o.x, o.w, o.bias).dims);
      EXPECT_TRUE(is_fast(c));
      const auto want = run(c, Where::kCpu);
      const auto got = run(c, Where::kFast);
      ASSERT_TRUE(want.ok() && got.ok());
      EXPECT_EQ(compare(*got, *want, kFloat), "");
    }
  }
}

// With f16 operands where the caller allows it: tiles of every shape, each order of terms, sums
// that are split and such that are not.
void check_matrices(const std::vector<Form>& forms, DType t) {
  for (const Form& f : forms) {
    SCOPED_TRACE(fmt::format("x {} weight {} {}", to_string(f.x), to_string(f.w), name(t)));
    const Operands o = operands(f, t);
    const TestTensor want = reference(f, o.x, o.w, o.bias);
    expect_matrices(make_case("aten.convolution.default", f, o.x, o.w, o.bias).out(t, want.dims),
                    {want}, {2e-2, 2e-3});
  }
}
// Few, as software GPUs take seconds to compile each.
TEST(Conv, SubgroupMatrices) {
  check_matrices({{{1, 20, 9, 8}, {35, 20, 3, 3}, {2, 1}, {1}, {1, 2}},  // by channels
                  {{1, 120, 3, 3}, {110, 120, 1, 1}},
                  {{1, 120, 1, 3, 3}, {8, 120, 1, 1, 1}},
                  {{1, 64, 4, 5}, {3, 64, 5, 1}, {1}, {2, 0}},  // split
                  {{1, 9, 42, 50}, {3, 9, 8, 8}, {1}, {4}}},    // wide
                 DType::kF32);
  check_matrices({{{2, 96, 5, 7}, {70, 48, 3, 2}, {1}, {2}, {1}, 2}}, DType::kF16);  // filled up
}

TEST(Conv, HalfPrecision) {
  check({{{1, 3, 6, 5}, {4, 3, 3, 3}, {1}, {1}},
         {{1, 3, 5, 5}, {4, 3, 3, 3}, {1}, {1}},  // rows that begin inside a word
         {{1, 4, 13}, {4, 1, 5}, {1}, {4}, {2}, 4},
         {{1, 300, 1, 1}, {70, 300, 1, 1}},
         {{2, 300, 3, 5}, {37, 300, 1, 1}},  // split, and rows that share words
         {{2, 4, 3, 3}, {4, 3, 2, 2}, {2}, {0}, {1}, 2, true, true},
         {{1, 3, 4, 5}, {3, 2, 2, 2}, {2}, {0}, {1}, 1, true, true, {1}}},
        DType::kF16);
}

TEST(Conv, Depthwise) {
  for (const DType t : {DType::kF32, DType::kF16}) {
    check({{{1, 6, 7, 9}, {6, 1, 3, 3}, {1}, {1}, {1}, 6},
           {{2, 3, 8, 8}, {6, 1, 3, 3}, {2}, {1}, {1}, 3},
           {{1, 4, 9, 6}, {4, 1, 5, 3}, {2, 1}, {2, 2}, {1, 2}, 4},
           {{1, 2, 10, 10}, {2, 1, 7, 7}, {1}, {3}, {1}, 2}},
          t);
  }
}

TEST(Conv, ThreeDimensions) {
  check({{{1, 2, 4, 5, 6}, {3, 2, 2, 3, 3}, {1}, {1}},
         {{2, 4, 3, 4, 5}, {4, 2, 3, 1, 2}, {2, 1, 2}, {1, 0, 1}, {1, 1, 2}, 2},
         {{1, 3, 2, 2, 3}, {4, 3, 1, 1, 1}},
         {{1, 2, 2, 3, 3}, {2, 3, 2, 2, 3}, {2, 1, 2}, {1, 0, 1}, {1}, 1, true, true, {1, 0, 1}}});
}

TEST(Conv, Transposed) {
  check({{{1, 3, 4, 5}, {3, 2, 3, 3}, {2}, {1}, {1}, 1, true, true, {1}},
         {{2, 4, 3, 3}, {4, 3, 2, 2}, {2}, {0}, {1}, 2, false, true},
         {{1, 2, 5, 4}, {2, 3, 3, 2}, {1, 3}, {2, 1}, {2, 1}, 1, true, true, {0, 2}},
         {{1, 4, 7}, {4, 2, 4}, {2}, {1}, {1}, 1, true, true},
         {{1, 2, 1, 4}, {2, 3, 2, 2}, {1}, {1, 0}, {1}, 1, true, true},  // an empty result
         {{1, 6, 5}, {6, 1, 3}, {3}, {0}, {2}, 6, true, true, {2}}});
}

TEST(Conv, OtherElementTypesRunOnTheCpu) {
  check(Form{{1, 3, 6, 5}, {4, 3, 3, 3}, {1}, {1}}, DType::kF64);
  const Form f{{1, 2, 4, 4}, {3, 2, 3, 3}};
  const Operands o = {random(DType::kI32, f.x, 1, -9, 9), random(DType::kI32, f.w, 2, -9, 9),
                      random(DType::kI32, {3}, 3, -9, 9)};
  const TestTensor want = reference(f, o.x, o.w, o.bias);
  expect_op(make_case("aten.convolution.default", f, o.x, o.w, o.bias).out(DType::kI32, want.dims),
            {want}, kExact);
}

TEST(Conv, ClampsTheResult) {
  const double kOpen = std::numeric_limits<double>::max();
  struct Bound {
    std::optional<double> lo, hi;
  };
  const auto clamped = [&](const Form& f, const Bound& b) {
    const Operands o = operands(f, DType::kF32);
    TestTensor want = reference(f, o.x, o.w, o.bias);
    for (double& v : want.data)
      v = std::min(std::max(v, b.lo.value_or(-kOpen)), b.hi.value_or(kOpen));
    Case c = make_case("et_vk.conv_with_clamp.default", f, o.x, o.w, o.bias);
    b.lo ? c.number(*b.lo) : c.none();
    b.hi ? c.number(*b.hi) : c.none();
    expect_op(c.out(DType::kF32, want.dims), {want}, kFloat);
  };
  const Form depthwise{{1, 3, 5, 6}, {3, 1, 3, 3}, {1}, {1}, {1}, 3};
  clamped(depthwise, {-kOpen, std::numeric_limits<double>::infinity()});
  clamped(depthwise, {0.0, kOpen});
  clamped(depthwise, {std::nullopt, 0.25});
  clamped(depthwise, {-0.5, std::nullopt});
  clamped({{1, 150, 2, 2}, {5, 150, 1, 1}}, {0.0, 0.5});
  clamped({{1, 3, 4, 4}, {3, 2, 2, 2}, {2}, {0}, {1}, 1, true, true}, {0.0, 0.5});
}

TEST(Conv, ActivatesAndAddsAResidual) {
  enum class Add : uint8_t { kNothing, kElements, kChannels };
  const auto fused_case = [](const Form& f, DType t, const std::string& activation, Add residual,
                             bool normed = false) {
    SCOPED_TRACE(fmt::format("weight {} {}", to_string(f.w), activation));
    const Operands o = operands(f, t);
    TestTensor want = reference(f, o.x, o.w, o.bias);
    Dims dims = want.dims;
    for (size_t i = 2; residual == Add::kChannels && i < dims.rank(); ++i) dims[i] = 1;
    const TestTensor add = random(t, dims, 4, -2, 2);
    const size_t shared = want.data.size() / add.data.size();
    const int64_t channels = f.transposed ? f.w[1] * f.groups : f.w[0];
    const TestTensor norm = random(t, {4 * channels}, 5, 0.25, 1.5);
    const auto of = [&](int64_t row, size_t i) {
      const auto c =
          static_cast<int64_t>(i) / (numel(want.dims) / want.dims[0] / channels) % channels;
      return norm.data[static_cast<size_t>(row * channels + c)];
    };
    for (size_t i = 0; i < want.data.size(); ++i) {
      double& v = want.data[i];
      if (normed) v = (v - of(2, i)) / std::sqrt(of(3, i) + 0.125) * of(0, i) + of(1, i);
      if (activation == "silu") v = v / (1 + std::exp(-v));
      if (activation == "hardswish") v = v * std::min(std::max(v + 3, 0.0), 6.0) / 6;
      if (residual != Add::kNothing) v += add.data[i / shared];
      v = std::max(v, -0.25);
    }
    Case c = make_case("pteryx.conv", f, o.x, o.w, o.bias);
    c.number(-0.25).none().text(activation);
    residual != Add::kNothing ? c.in(add) : c.none();
    normed ? c.constant(norm).number(0.125) : c.none().none();
    expect_op(c.out(t, want.dims), {want}, t == DType::kF16 ? Tolerance{1e-2, 4e-3} : kFloat);
  };
  fused_case({{1, 3, 5, 6}, {3, 1, 3, 3}, {1}, {1}, {1}, 3}, DType::kF32, "silu", Add::kNothing);
  for (const Add add : {Add::kElements, Add::kChannels})
    fused_case({{2, 5, 7, 7}, {6, 5, 3, 3}, {1}, {1}}, DType::kF32, "none", add);
  fused_case({{1, 150, 2, 2}, {5, 150, 1, 1}}, DType::kF16, "hardswish", Add::kElements);  // split
  fused_case({{1, 150, 3, 3}, {5, 150, 1, 1}}, DType::kF16, "silu", Add::kElements);
  fused_case({{2, 4, 5, 5}, {6, 2, 3, 3}, {1}, {1}, {1}, 2}, DType::kF32, "silu", Add::kElements,
             true);
  fused_case({{1, 3, 4, 4}, {3, 2, 2, 2}, {2}, {0}, {1}, 1, true, true}, DType::kF32, "silu",
             Add::kElements);
  const Form f{{1, 3, 4, 4}, {4, 3, 3, 3}};
  const Operands o = operands(f, DType::kF32);
  const auto fused = [&](const std::string& activation, const Dims& residual) {
    Case c = make_case("pteryx.conv", f, o.x, o.w, o.bias);
    c.none().none().text(activation).in(random(DType::kF32, residual)).none().none();
    return c.out(DType::kF32, {1, 4, 2, 2});
  };
  expect_error(fused("gelu", {1, 4, 2, 2}),
               "activation (value 11) value: expected none, silu or hardswish, got gelu");
  expect_error(fused("silu", {1, 4, 2, 1}),
               "residual (value 12) shape: expected [1, 4, 2, 2], got [1, 4, 2, 1]");
}

TEST(Conv, AnInputChannelCountOfZeroLeavesTheBias) {
  const Form f{{1, 0, 4, 4}, {3, 0, 3, 3}};
  const Operands o = operands(f, DType::kF32);
  expect_op(
      make_case("aten.convolution.default", f, o.x, o.w, o.bias).out(DType::kF32, {1, 3, 2, 2}),
      {reference(f, o.x, o.w, o.bias)}, kExact);
}

void expect_refused(const Form& f, std::string_view text, const Dims& bias = {4}) {
  const TestTensor x = random(DType::kF32, f.x);
  const TestTensor w = random(DType::kF32, f.w);
  expect_error(make_case("aten.convolution.default", f, x, w, random(DType::kF32, bias))
                   .out(DType::kF32, {1, 4, 9, 9}),
               text);
}

TEST(Conv, SaysWhatDoesNotFit) {
  expect_refused({{1, 3, 4, 4}, {4, 3, 5, 5}},
                 "a kernel of size 5 (dilated) exceeds the padded input of size 4");
  expect_refused({{1, 3, 4, 4}, {4, 3, 3, 3}, {1}, {0}, {2}},
                 "a kernel of size 5 (dilated) exceeds");
  expect_refused({{1, 5, 4, 4}, {4, 3, 3, 3}}, "x (value 0) channels: expected 3, got 5");
  expect_refused({{1, 6, 4, 4}, {4, 2, 3, 3}, {1}, {0}, {1}, 3},
                 "groups 3 does not divide the 4 channels of weight");
  expect_refused({{1, 3, 4, 4}, {4, 3, 3, 3}, {1}, {0}, {1}, 0}, "value: expected 1 to");
  expect_refused({{1, 3, 4, 4}, {4, 3, 3, 3}}, "bias (value 2) shape: expected [4], got [5]", {5});
  expect_refused({{1, 3, 4, 4}, {4, 3, 3, 3}, {1, 1, 1}},
                 "stride (value 3) length: expected 1 or 2, got 3");
  expect_refused({{1, 3, 4, 4}, {4, 3, 3, 3}, {0}}, "stride (value 3) entry: expected 1 to");
  expect_refused({{1, 3, 4, 4}, {4, 3, 3, 3}, {1}, {-1}}, "padding (value 4) entry: expected 0 to");
  expect_refused({{3, 4}, {4, 3, 3, 3}}, "x (value 0) rank: expected 3 or 4, got 2");
  expect_refused(
      {{1, 3, 4, 4}, {3, 4, 3, 3}, {2}, {0}, {1}, 1, true, true, {2}},
      "output_padding (value 7) entry: expected less than stride 2 or dilation 1, got 2");
  expect_refused({{1, 3, 1, 1}, {3, 4, 1, 1}, {1}, {1}, {1}, 1, true, true},
                 "gives a result of size -1");
}

}  // namespace
}  // namespace pteryx::ops::testing::conv_cases
