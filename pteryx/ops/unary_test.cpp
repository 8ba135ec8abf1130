// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

using Rule = std::function<double(double)>;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TestTensor apply(const TestTensor& x, DType out, const Rule& f) {
  TestTensor y{out, x.dims, {}};
  for (const double v : x.data) y.data.push_back(f(v));
  return y;
}

// A value of the sigmoid family written in another way than the kernel's.
double logistic(double x) { return 0.5 * (1 + std::tanh(x / 2)); }
double bounded(double x, double lo, double hi) { return std::fmin(std::fmax(x, lo), hi); }

struct Float {
  std::string name;
  double lo, hi;  // of the inputs
  Rule rule;
  std::vector<double> scalars = {};
  Tolerance tol = {1e-6, 1e-5};
};
const std::vector<Float> kFloatOps = {
    {"abs", -9, 9, [](double x) { return std::fabs(x); }},
    {"neg", -9, 9, [](double x) { return -x; }},
    {"sign", -1, 1, [](double x) { return x > 0 ? 1.0 : -1.0; }},
    {"round", -9, 9, [](double x) { return std::nearbyint(x); }},
    {"floor", -9, 9, [](double x) { return std::floor(x); }},
    {"ceil", -9, 9, [](double x) { return std::ceil(x); }},
    {"trunc", -9, 9, [](double x) { return std::trunc(x); }},
    {"sqrt", 0, 1e4, [](double x) { return std::sqrt(x); }},
    {"rsqrt", 0.01, 1e4, [](double x) { return 1 / std::sqrt(x); }},
    {"reciprocal", 0.01, 9, [](double x) { return 1 / x; }},
    {"exp", -90, 11, [](double x) { return std::exp(x); }},
    {"exp2", -20, 15, [](double x) { return std::exp2(x); }},
    {"expm1", -10, 10, [](double x) { return std::expm1(x); }},
    {"log", 1e-3, 6e4, [](double x) { return std::log(x); }},
    {"log2", 1e-3, 6e4, [](double x) { return std::log2(x); }},
    {"log10", 1e-3, 6e4, [](double x) { return std::log10(x); }},
    {"log1p", -0.9, 9, [](double x) { return std::log1p(x); }},
    {"sin", -7, 7, [](double x) { return std::sin(x); }},
    {"cos", -7, 7, [](double x) { return std::cos(x); }},
    {"tan", -1.5, 1.5, [](double x) { return std::tan(x); }},
    {"asin", -1, 1, [](double x) { return std::asin(x); }},
    {"acos", -1, 1, [](double x) { return std::acos(x); }},
    {"atan", -9, 9, [](double x) { return std::atan(x); }},
    {"sinh", -10, 10, [](double x) { return std::sinh(x); }},
    {"cosh", -10, 10, [](double x) { return std::cosh(x); }},
    {"tanh", -10, 10, [](double x) { return std::tanh(x); }},
    {"asinh", -9, 9, [](double x) { return std::asinh(x); }},
    {"acosh", 1, 90, [](double x) { return std::acosh(x); }},
    {"atanh", -0.99, 0.99, [](double x) { return std::atanh(x); }},
    {"erf", -4, 4, [](double x) { return std::erf(x); }},
    {"relu", -9, 9, [](double x) { return std::fmax(x, 0); }},
    {"relu6", -9, 9, [](double x) { return bounded(x, 0, 6); }},
    {"sigmoid", -20, 20, logistic},
    {"silu", -20, 20, [](double x) { return x * logistic(x); }},
    {"hardsigmoid", -5, 5, [](double x) { return bounded(x / 6 + 0.5, 0, 1); }},
    {"hardswish", -5, 5, [](double x) { return x * bounded(x / 6 + 0.5, 0, 1); }},
    {"hardshrink", -3, 3, [](double x) { return std::fabs(x) > 1.5 ? x : 0; }, {1.5}},
    {"leaky_relu", -9, 9, [](double x) { return x > 0 ? x : x * 0.1; }, {0.1}},
    {"logit", 0, 1, [](double x) { return 2 * std::atanh(2 * bounded(x, 0.1, 0.9) - 1); }, {0.1}},
    {"softplus", -9, 9, [](double x) { return std::log1p(std::exp(2 * x)) / 2; }, {2, 20}},
    {"hardtanh", -9, 9, [](double x) { return bounded(x, -2, 2.5); }, {-2, 2.5}},
    {"clamp", -9, 9, [](double x) { return bounded(x, -0.25, 3); }, {-0.25, 3}},
    {"elu", -9, 9, [](double x) { return 3 * (x > 0 ? x : 2 * std::expm1(x * 0.5)); }, {2, 3, 0.5}},
};

Case call(const Float& op, const TestTensor& x) {
  Case c("aten." + op.name + ".default");
  c.in(x);
  for (const double s : op.scalars) c.number(s);
  return c.out(x.dtype, x.dims);
}

TEST(Unary, FloatsMatchReference) {
  for (const Float& op : kFloatOps) {
    for (const DType t : {DType::kF32, DType::kF16, DType::kF64}) {
      const TestTensor x = random(t, {3, 37}, 1, op.lo, op.hi);
      expect_op(call(op, x), {apply(x, t, op.rule)},
                t == DType::kF16 ? Tolerance{1e-3, 2e-3} : op.tol);
    }
  }
}

TEST(Unary, VectorsOfTheCpuTakeFloats) {
  for (const DType t : {DType::kF32, DType::kF16}) {
    const TestTensor x = random(t, {3, 321}, 1);
    for (const char* name : {"aten.silu.default", "aten.exp.default", "aten.tanh.default"})
      EXPECT_TRUE(is_fast(Case(name).in(x).out(t, x.dims))) << name;
  }
}

TEST(Unary, EveryShape) {
  const Float& relu = kFloatOps[30];
  for (const Dims& d : {Dims{}, Dims{1}, Dims{0, 3}, Dims{2, 1, 3, 1, 2, 1, 2, 3}, Dims{5, 13}}) {
    for (const DType t : {DType::kF32, DType::kF16}) {
      const TestTensor x = random(t, d, 2, -9, 9);
      expect_op(call(relu, x), {apply(x, t, relu.rule)}, kExact);
    }
  }
}

// Relative accuracy where the plain formula cancels.
TEST(Unary, AccurateNearZero) {
  const TestTensor x = make(DType::kF32, {40}, [](int64_t i) {
    return std::pow(10.0, -8.0 + 0.2 * static_cast<double>(i)) * (i % 2 == 0 ? 1 : -1);
  });
  for (const Float& op : kFloatOps) {
    for (const std::string_view name : {"expm1", "log1p", "erf", "tanh", "sinh", "asinh", "atanh",
                                        "asin", "atan", "sin", "tan"}) {
      if (op.name == name) expect_op(call(op, x), {apply(x, DType::kF32, op.rule)}, {0, 2e-6});
    }
  }
}

TEST(Unary, AnglesFarFromZero) {
  const TestTensor x = random(DType::kF32, {999}, 3, -4096, 4096);
  const Rule sine = [](double v) { return std::sin(v); };
  const Rule cosine = [](double v) { return std::cos(v); };
  expect_op(Case("aten.sin.default").in(x).out(DType::kF32, {999}), {apply(x, DType::kF32, sine)},
            {1e-6, 0});
  expect_op(Case("aten.cos.default").in(x).out(DType::kF32, {999}), {apply(x, DType::kF32, cosine)},
            {1e-6, 0});
  const TestTensor far = random(DType::kF32, {99}, 3, -1e5, 1e5);
  expect_op(Case("aten.sin.default").in(far).out(DType::kF32, {99}),
            {apply(far, DType::kF32, sine)}, {1e-4, 0});
}

TEST(Unary, GeluBothForms) {
  for (const DType t : {DType::kF32, DType::kF16}) {
    const TestTensor x = random(t, {5, 33}, 4, -6, 6);
    const Tolerance tol = t == DType::kF16 ? Tolerance{1e-3, 2e-3} : Tolerance{1e-6, 1e-4};
    expect_op(Case("aten.gelu.default").in(x).text("none").out(t, x.dims),
              {apply(x, t, [](double v) { return v * 0.5 * std::erfc(-v / std::sqrt(2.0)); })},
              tol);
    const Rule tanh_form = [](double v) {
      return v * logistic(2 * std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v));
    };
    expect_op(Case("aten.gelu.default").in(x).text("tanh").out(t, x.dims), {apply(x, t, tanh_form)},
              tol);
  }
  expect_error(
      Case("aten.gelu.default").in(random(DType::kF32, {2})).text("fast").out(DType::kF32, {2}),
      "approximate: expected none or tanh, got 'fast'");
}

TEST(Unary, IntegersStayIntegers) {
  struct Int {
    std::string name;
    Rule rule;
  };
  const std::vector<Int> ops = {
      {"abs", [](double x) { return std::fabs(x); }},
      {"neg", [](double x) { return -x; }},
      {"sign", [](double x) { return x > 0 ? 1.0 : (x < 0 ? -1.0 : 0.0); }},
      {"relu", [](double x) { return std::fmax(x, 0); }},
      {"floor", [](double x) { return x; }},
      {"round", [](double x) { return x; }},
      {"bitwise_not", [](double x) { return -1 - x; }}};
  for (const Int& op : ops) {
    for (const DType t : {DType::kI32, DType::kI8, DType::kI64, DType::kI16}) {
      const TestTensor x = random(t, {3, 7}, 5, -100, 100);
      expect_op(Case("aten." + op.name + ".default").in(x).out(t, x.dims), {apply(x, t, op.rule)},
                kExact);
    }
  }
  const TestTensor big = {DType::kI32, {3}, {16777217, -16777219, -2147483647}};
  expect_op(Case("aten.neg.default").in(big).out(DType::kI32, {3}),
            {apply(big, DType::kI32, [](double x) { return -x; })}, kExact);
  const TestTensor x = random(DType::kI32, {9}, 6, 0, 9);  // functions of integers are floats
  expect_op(Case("aten.sqrt.default").in(x).out(DType::kF32, {9}),
            {apply(x, DType::kF32, [](double v) { return std::sqrt(v); })}, {1e-6, 1e-6});
}

TEST(Unary, ClampBounds) {
  for (const DType t : {DType::kF32, DType::kI32, DType::kI64, DType::kI8, DType::kF16}) {
    const TestTensor x = random(t, {4, 9}, 7, -50, 50);
    expect_op(Case("aten.clamp.default").in(x).none().integer(5).out(t, x.dims),
              {apply(x, t, [](double v) { return std::fmin(v, 5); })}, kExact);
    expect_op(Case("aten.clamp.default").in(x).number(-7).none().out(t, x.dims),
              {apply(x, t, [](double v) { return std::fmax(v, -7); })}, kExact);
    expect_op(Case("aten.clamp.default").in(x).integer(8).integer(3).out(t, x.dims),
              {apply(x, t, [](double) { return 3; })}, kExact);
  }
  const TestTensor x = random(DType::kI32, {9}, 7, -5, 5);  // a bound between integers
  expect_op(Case("aten.clamp.default").in(x).number(0.5).none().out(DType::kF32, {9}),
            {apply(x, DType::kF32, [](double v) { return std::fmax(v, 0.5); })}, kExact);
  const TestTensor wide = {DType::kI64, {3}, {4e9, -4e9, 7}};
  expect_op(Case("aten.clamp.default").in(wide).none().integer(3'000'000'000).out(DType::kI64, {3}),
            {{DType::kI64, {3}, {3e9, -4e9, 7}}}, kExact);
}

TEST(Unary, BooleansOfAnyCount) {
  for (const int64_t n : {1, 2, 3, 4, 5, 67}) {
    const TestTensor x = random(DType::kBool, {n}, 8);
    const TestTensor want = apply(x, DType::kBool, [](double v) { return 1 - v; });
    expect_op(Case("aten.logical_not.default").in(x).out(DType::kBool, {n}), {want}, kExact);
    expect_op(Case("aten.bitwise_not.default").in(x).out(DType::kBool, {n}), {want}, kExact);
  }
  const TestTensor x = {DType::kF32, {4}, {0, -0.0, 0.25, -3}};
  expect_op(Case("aten.logical_not.default").in(x).out(DType::kBool, {4}),
            {{DType::kBool, {4}, {1, 1, 0, 0}}}, kExact);
  expect_error(Case("aten.bitwise_not.default").in(x).out(DType::kF32, {4}),
               "x (value 0) type: expected bool, u8");
}

TEST(Unary, SortsNumbersFromTheRest) {
  for (const DType t : {DType::kF32, DType::kF16}) {
    const TestTensor x = {t, {5}, {kNan, kInf, -kInf, 0, 60000}};
    expect_op(Case("aten.isnan.default").in(x).out(DType::kBool, {5}),
              {{DType::kBool, {5}, {1, 0, 0, 0, 0}}}, kExact);
    expect_op(Case("aten.isinf.default").in(x).out(DType::kBool, {5}),
              {{DType::kBool, {5}, {0, 1, 1, 0, 0}}}, kExact);
    expect_op(Case("aten.isfinite.default").in(x).out(DType::kBool, {5}),
              {{DType::kBool, {5}, {0, 0, 0, 1, 1}}}, kExact);
  }
}

// Where PyTorch answers NaN, infinity or a limit, so does the kernel.
TEST(Unary, SpecialValues) {
  const TestTensor x = {DType::kF32, {7}, {kNan, kInf, -kInf, 200, -200, 0, 2}};
  struct Special {
    std::string name;
    std::vector<double> want;
    std::vector<double> scalars = {};
  };
  const std::vector<Special> ops = {
      {"exp", {kNan, kInf, 0, kInf, 0, 1, std::exp(2.0)}},
      {"expm1", {kNan, kInf, -1, kInf, -1, 0, std::expm1(2.0)}},
      {"exp2", {kNan, kInf, 0, kInf, 0, 1, 4}},
      {"tanh", {kNan, 1, -1, 1, -1, 0, std::tanh(2.0)}},
      {"sigmoid", {kNan, 1, 0, 1, 0, 0.5, logistic(2)}},
      {"sinh", {kNan, kInf, -kInf, kInf, -kInf, 0, std::sinh(2.0)}},
      {"cosh", {kNan, kInf, kInf, kInf, kInf, 1, std::cosh(2.0)}},
      {"erf", {kNan, 1, -1, 1, -1, 0, std::erf(2.0)}},
      {"log", {kNan, kInf, kNan, std::log(200), kNan, -kInf, std::log(2)}},
      {"log1p", {kNan, kInf, kNan, std::log(201), kNan, 0, std::log(3)}},
      {"asin", {kNan, kNan, kNan, kNan, kNan, 0, kNan}},
      {"acosh", {kNan, kInf, kNan, std::acosh(200), kNan, kNan, std::acosh(2)}},
      {"atan", {kNan, M_PI / 2, -M_PI / 2, std::atan(200), -std::atan(200), 0, std::atan(2)}},
      {"atanh", {kNan, kNan, kNan, kNan, kNan, 0, kNan}},
      {"asinh", {kNan, kInf, -kInf, std::asinh(200), -std::asinh(200), 0, std::asinh(2)}},
      {"sqrt", {kNan, kInf, kNan, std::sqrt(200), kNan, 0, std::sqrt(2)}},
      {"relu", {kNan, kInf, 0, 200, 0, 0, 2}},
      {"sin", {kNan, kNan, kNan, std::sin(200), -std::sin(200), 0, std::sin(2)}},
      {"reciprocal", {kNan, 0, 0, 0.005, -0.005, kInf, 0.5}},
      {"softplus", {kNan, kInf, 0, 200, 0, std::log(2), std::log1p(std::exp(2))}, {1, 20}},
      {"elu", {kNan, kInf, -1, 200, -1, 0, 2}, {1, 1, 1}},
      {"clamp", {kNan, 3, -1, 3, -1, 0, 2}, {-1, 3}},
      {"hardsigmoid", {kNan, 1, 0, 1, 0, 0.5, 5.0 / 6}},
  };
  for (const Special& op : ops) {
    Case c("aten." + op.name + ".default");
    c.in(x);
    for (const double s : op.scalars) c.number(s);
    expect_op(c.out(DType::kF32, {7}), {{DType::kF32, {7}, op.want}}, {1e-6, 1e-5});
  }
}

TEST(Unary, OutSpellings) {
  const TestTensor x = random(DType::kF32, {3}, 9);
  for (const Float& op : kFloatOps) {
    if (op.name == "relu6") continue;
    Case c("aten::" + op.name + ".out");
    c.in(x);
    for (const double s : op.scalars) c.number(s);
    EXPECT_TRUE(run(c.out(DType::kF32, {3}), Where::kCpu).ok()) << op.name;
  }
}

}  // namespace
}  // namespace pteryx::ops::testing
