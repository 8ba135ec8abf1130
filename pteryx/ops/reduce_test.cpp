// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/op_harness.h"
#include "pteryx/ops/testing/op_runner.h"

namespace pteryx::ops::testing {
namespace {

// The elements of each result, in row-major order of the reduced dims.
struct Grouped {
  Dims dims;
  std::vector<std::vector<double>> rows;
};
Grouped group(const TestTensor& x, const std::vector<int64_t>& dims, bool keepdim) {
  const auto rank = static_cast<int64_t>(x.dims.rank());
  std::vector<bool> gone(x.dims.rank(), dims.empty());
  for (const int64_t d : dims) {
    if (rank > 0) gone[static_cast<size_t>(d < 0 ? d + rank : d)] = true;
  }
  Grouped g;
  size_t count = 1;
  for (size_t i = 0; i < x.dims.rank(); ++i) {
    if (!gone[i]) count *= static_cast<size_t>(x.dims[i]);
    if (!gone[i]) g.dims.push_back(x.dims[i]);
    if (gone[i] && keepdim) g.dims.push_back(1);
  }
  g.rows.resize(count);
  for (size_t i = 0; i < x.data.size(); ++i) {
    size_t rest = i;
    size_t row = 0;
    size_t step = 1;
    for (size_t d = x.dims.rank(); d-- > 0;) {
      const auto size = static_cast<size_t>(x.dims[d]);
      if (!gone[d]) row += rest % size * step;
      if (!gone[d]) step *= size;
      rest /= size;
    }
    g.rows[row].push_back(x.data[i]);
  }
  return g;
}

using Rule = std::function<double(const std::vector<double>&)>;
TestTensor apply(const Grouped& g, DType t, const Rule& f) {
  TestTensor y{t, g.dims, {}};
  for (const auto& r : g.rows) y.data.push_back(f(r));
  return y;
}

double sum(const std::vector<double>& r) {
  double total = 0;
  for (const double v : r) total += v;
  return total;
}
double mean(const std::vector<double>& r) { return sum(r) / static_cast<double>(r.size()); }
double largest(const std::vector<double>& r) { return *std::max_element(r.begin(), r.end()); }
double smallest(const std::vector<double>& r) { return *std::min_element(r.begin(), r.end()); }
double first_largest(const std::vector<double>& r) {
  return static_cast<double>(std::max_element(r.begin(), r.end()) - r.begin());
}
double first_smallest(const std::vector<double>& r) {
  return static_cast<double>(std::min_element(r.begin(), r.end()) - r.begin());
}
double variance(const std::vector<double>& r, double correction) {
  const double m = mean(r);
  double total = 0;
  for (const double v : r) total += (v - m) * (v - m);
  return total / (static_cast<double>(r.size()) - correction);
}

struct Shape {
  Dims dims;
  std::vector<int64_t> over;
};
const Shape kShapes[] = {
    {{1, 1}, {-1}},
    {{7, 33}, {-1}},
    {{7, 33}, {0}},
    {{2, 3, 4, 5}, {2, 3}},
    {{2, 3, 4, 5}, {0, 2}},
    {{2, 3, 4, 5}, {}},
    {{5, 3, 257}, {1, -1}},
    {{300, 40}, {0}},
    {{9}, {0}},
    {{}, {}},
    {{3, 1, 300}, {1, 2}},
    {{0, 3}, {-1}},
    {{2, 1, 2, 3, 1, 2, 2, 3}, {1, 3, 5, 7}},
};

const Shape kRows{{7, 33}, {1}};
const Shape kColumns{{7, 33}, {0}};

void check_sum(const Shape& s, DType t, bool keep) {
  const TestTensor x = random(t, s.dims, 3);
  const Grouped g = group(x, s.over, keep);
  expect_op(Case("aten.sum.dim_IntList").in(x).ints(s.over).flag(keep).none().out(t, g.dims),
            {apply(g, t, sum)}, t == DType::kF16 ? Tolerance{2e-2, 2e-3} : Tolerance{1e-4, 1e-5});
}
void check_mean(const Shape& s, DType t) {
  const TestTensor x = random(t, s.dims, 3);
  const Grouped g = group(x, s.over, false);
  expect_op(Case("aten.mean.dim").in(x).ints(s.over).flag(false).none().out(t, g.dims),
            {apply(g, t, mean)}, {1e-5, t == DType::kF16 ? 2e-3 : 1e-5});
}

TEST(Reduce, SumsAndMeansOverAnyDims) {
  for (const Shape& s : kShapes) {
    check_sum(s, DType::kF32, false);
    check_sum(s, DType::kF32, true);
    check_mean(s, DType::kF64);
  }
  for (const Shape& s : {kRows, kColumns}) {
    check_sum(s, DType::kF16, false);
    check_mean(s, DType::kF32);
  }
}

// An extreme of each row, named "aten.amax.default" and so on; rows of integers have ties.
TestTensor ties(DType t, const Dims& d) { return random(t, d, 4, 0, is_float(t) ? 1 : 9); }
void check_value(const std::string& op, const Rule& rule, const Shape& s, DType t) {
  const TestTensor x = ties(t, s.dims);
  const Grouped g = group(x, s.over, true);
  expect_op(Case(op).in(x).ints(s.over).flag(true).out(t, g.dims), {apply(g, t, rule)}, kExact);
}
void check_index(const std::string& op, const Rule& rule, const Shape& s, DType t, DType index) {
  const TestTensor x = ties(t, s.dims);
  const Grouped g = group(x, s.over, true);
  Case c(op);
  s.over.empty() ? c.in(x).none() : c.in(x).integer(s.over[0]);
  expect_op(c.flag(true).out(index, g.dims), {apply(g, index, rule)}, kExact);
}
void check_pair(const std::string& op, const Rule& value, const Rule& index, const Shape& s,
                DType t) {
  const TestTensor x = ties(t, s.dims);
  const Grouped g = group(x, s.over, false);
  expect_op(Case(op).in(x).integer(s.over[0]).flag(false).outs(
                {{t, g.dims, {}}, {DType::kI64, g.dims, {}}}),
            {apply(g, t, value), apply(g, DType::kI64, index)}, kExact);
}

TEST(Reduce, VectorsOfTheCpuSumFloats) {
  for (const DType t : {DType::kF32, DType::kF16}) {
    const TestTensor x = random(t, {7, 333}, 1);
    EXPECT_TRUE(is_fast(Case("aten.mean.dim").in(x).ints({1}).flag(false).none().out(t, {7})));
  }
}

// The sum of which is beyond f32.
TEST(Reduce, MeansOfLargeValuesAreFinite) {
  TestTensor x{DType::kF32, {2, 333}, std::vector<double>(666, 3e38)};
  const Case c = Case("aten.mean.dim").in(x).ints({1}).flag(false).none().out(DType::kF32, {2});
  EXPECT_TRUE(is_fast(c));
  Runner r;
  ASSERT_TRUE(r.build(c).ok());
  const auto y = r.run_cpu(Where::kFast);
  ASSERT_TRUE(y.ok()) << y.status().message();
  for (const double v : y->front().data) EXPECT_NEAR(v, 3e38, 3e32);
}

TEST(Reduce, ExtremesOverAnyDims) {
  for (const Shape& s : kShapes) {
    check_value("aten.amax.default", largest, s, DType::kF32);
    check_value("aten.amin.default", smallest, s, DType::kI64);
  }
  for (const DType t : {DType::kF16, DType::kI32, DType::kU8, DType::kBool}) {
    check_value("aten.amax.default", largest, kColumns, t);
  }
  check_value("aten.amin.default", smallest, kRows, DType::kF32);
}

TEST(Reduce, FirstIndexOfTheExtreme) {
  for (const Shape& s : kShapes) {
    if (s.over.size() > 1) continue;
    check_index("aten.argmax.default", first_largest, s, DType::kF32, DType::kI64);
    check_index("aten.argmin.default", first_smallest, s, DType::kI64, DType::kI64);
  }
  check_index("aten.argmin.default", first_smallest, kRows, DType::kI32, DType::kI32);
  for (const Shape& s : {kRows, kColumns}) {
    check_pair("aten.max.dim", largest, first_largest, s, DType::kF32);
    check_pair("aten.min.dim", smallest, first_smallest, s, DType::kI32);
    check_pair("aten.max.dim", largest, first_largest, s, DType::kI64);
  }
}

// Halves in pairs of rows, an odd number of them, with an index each.
TEST(Reduce, PairOfHalvesAndIndices) {
  const TestTensor x = random(DType::kF16, {5, 41}, 5);
  const Grouped g = group(x, {1}, false);
  expect_op(Case("aten.max.dim")
                .in(x)
                .integer(1)
                .flag(false)
                .outs({{DType::kF16, {5}, {}}, {DType::kI64, {5}, {}}}),
            {apply(g, DType::kF16, largest), apply(g, DType::kI64, first_largest)}, kExact);
}

TEST(Reduce, WholeTensorForms) {
  const TestTensor x = random(DType::kF32, {3, 20}, 6, 0.5, 2);
  const Grouped all = group(x, {}, false);
  const auto check = [&](const Case& c, const Grouped& g, const Rule& rule) {
    expect_op(c, {apply(g, DType::kF32, rule)}, {1e-6, 1e-5});
  };
  const auto product = [](const std::vector<double>& r) {
    double p = 1;
    for (const double v : r) p *= v;
    return p;
  };
  check(Case("aten.max.default").in(x).out(DType::kF32, {}), all, largest);
  check(Case("aten.min.default").in(x).out(DType::kF32, {}), all, smallest);
  check(Case("aten.sum.default").in(x).none().out(DType::kF32, {}), all, sum);
  check(Case("aten.mean.default").in(x).none().out(DType::kF32, {}), all, mean);
  check(Case("aten.prod.default").in(x).none().out(DType::kF32, {}), all, product);
  check(Case("aten.prod.dim_int").in(x).integer(1).flag(false).none().out(DType::kF32, {3}),
        group(x, {1}, false), product);
}

TEST(Reduce, SumsOfBoolsAndIntegersCount) {
  for (const DType t : {DType::kBool, DType::kI32}) {
    const TestTensor x = random(t, {4, 70}, 7, 0, 1);
    const Grouped g = group(x, {1}, false);
    for (const DType to : {DType::kI64, DType::kI32}) {
      expect_op(Case("aten.sum.dim_IntList").in(x).ints({1}).flag(false).none().out(to, g.dims),
                {apply(g, to, sum)}, kExact);
    }
  }
}

TEST(Reduce, LongRowsKeepTheirPrecision) {
  for (const Shape& s : {Shape{{1, 128256}, {1}}, Shape{{40000, 3}, {0}}, Shape{{2000, 40}, {0}}}) {
    const TestTensor x = random(DType::kF32, s.dims, 8, 0, 1);
    const Grouped g = group(x, s.over, false);
    double most = 0;
    for (const auto& r : g.rows) most = std::max(most, sum(r));
    expect_op(
        Case("aten.sum.dim_IntList").in(x).ints(s.over).flag(false).none().out(DType::kF32, g.dims),
        {apply(g, DType::kF32, sum)}, {most * 1e-6, 0});
    check_index("aten.argmax.default", first_largest, s, DType::kF32, DType::kI64);
  }
}

TEST(Reduce, FirstOfEqualValuesAcrossParts) {
  const TestTensor x =
      make(DType::kF32, {2, 70000}, [](int64_t i) { return i % 70000 % 1000 == 777 ? 0.0 : -1.0; });
  expect_op(Case("aten.argmax.default").in(x).integer(-1).flag(false).out(DType::kI64, {2}),
            {{DType::kI64, {2}, {777, 777}}}, kExact);
}

TEST(Reduce, VarianceOfValuesFarFromZero) {
  for (const Shape& s : {Shape{{4, 33}, {1}}, Shape{{6, 5, 7}, {0, 2}}, Shape{{2, 50000}, {1}},
                         Shape{{64, 40}, {0}}}) {
    const TestTensor x = random(DType::kF32, s.dims, 9, 999, 1001);
    const Grouped g = group(x, s.over, false);
    for (const double c : {0.0, 1.0}) {
      expect_op(Case("aten.var.correction")
                    .in(x)
                    .ints(s.over)
                    .number(c)
                    .flag(false)
                    .out(DType::kF32, g.dims),
                {apply(g, DType::kF32, [&](const auto& r) { return variance(r, c); })},
                {1e-6, 1e-4});
    }
  }
}

TEST(Reduce, FormsOfVariance) {
  const TestTensor x = random(DType::kF32, {5, 33}, 9);
  const Grouped g = group(x, {1}, false);
  const TestTensor unbiased = apply(g, DType::kF32, [](const auto& r) { return variance(r, 1); });
  const TestTensor biased = apply(g, DType::kF32, [](const auto& r) { return variance(r, 0); });
  TestTensor deviation = unbiased;
  for (double& v : deviation.data) v = std::sqrt(v);
  const Tolerance tol{1e-5, 1e-5};
  expect_op(Case("aten.var.dim").in(x).ints({1}).flag(true).flag(false).out(DType::kF32, {5}),
            {unbiased}, tol);
  expect_op(Case("aten.var.dim").in(x).ints({1}).flag(false).flag(false).out(DType::kF32, {5}),
            {biased}, tol);
  expect_op(Case("aten.std.correction").in(x).ints({1}).none().flag(false).out(DType::kF32, {5}),
            {deviation}, tol);
  expect_op(Case("aten.var_mean.correction")
                .in(x)
                .ints({1})
                .integer(0)
                .flag(false)
                .outs({{DType::kF32, {5}, {}}, {DType::kF32, {5}, {}}}),
            {biased, apply(g, DType::kF32, mean)}, tol);
}

TEST(Reduce, NothingGivesTheIdentity) {
  const TestTensor x{DType::kF32, {3, 0}, {}};
  expect_op(Case("aten.sum.dim_IntList").in(x).ints({1}).flag(false).none().out(DType::kF32, {3}),
            {{DType::kF32, {3}, {0, 0, 0}}}, kExact);
  expect_op(Case("aten.prod.dim_int").in(x).integer(1).flag(false).none().out(DType::kF32, {3}),
            {{DType::kF32, {3}, {1, 1, 1}}}, kExact);
  expect_op(Case("aten.amax.default").in(x).ints({0}).flag(false).out(DType::kF32, {0}),
            {{DType::kF32, {0}, {}}}, kExact);
}

TEST(Reduce, InfinitiesAndZerosOfBothSigns) {
  const double inf = std::numeric_limits<double>::infinity();
  const TestTensor x{
      DType::kF32, {4, 3}, {-inf, -inf, -inf, -0.0, 0.0, -1, inf, 1, inf, -5, -inf, -7}};
  expect_op(Case("aten.amax.default").in(x).ints({1}).flag(false).out(DType::kF32, {4}),
            {{DType::kF32, {4}, {-inf, 0, inf, -5}}}, kExact);
  expect_op(Case("aten.argmax.default").in(x).integer(1).flag(false).out(DType::kI32, {4}),
            {{DType::kI32, {4}, {0, 0, 0, 0}}}, kExact);
  expect_op(Case("aten.argmin.default").in(x).integer(1).flag(false).out(DType::kI32, {4}),
            {{DType::kI32, {4}, {0, 2, 1, 1}}}, kExact);
}

TEST(Reduce, NotANumberWins) {
  const double nan = std::nan("");
  const TestTensor x{DType::kF32, {2, 3}, {1, nan, 3, -1, 2, nan}};
  expect_op(Case("aten.argmax.default").in(x).integer(1).flag(false).out(DType::kI32, {2}),
            {{DType::kI32, {2}, {1, 2}}}, kExact);
  expect_op(Case("aten.amin.default").in(x).ints({1}).flag(false).out(DType::kF32, {2}),
            {{DType::kF32, {2}, {nan, nan}}}, kExact);
}

TEST(Reduce, RefusesWhatPyTorchRefuses) {
  const TestTensor x = random(DType::kF32, {2, 3});
  expect_error(
      Case("aten.sum.dim_IntList").in(x).ints({0, -2}).flag(false).none().out(DType::kF32, {3}),
      "dim -2 appears twice");
  expect_error(
      Case("aten.sum.dim_IntList").in(x).ints({2}).flag(false).none().out(DType::kF32, {3}), "2");
  expect_error(Case("aten.amax.default")
                   .in({DType::kF32, {2, 0}, {}})
                   .ints({1})
                   .flag(false)
                   .out(DType::kF32, {2}),
               "x has shape [2, 0]: no elements to choose from");
}

}  // namespace
}  // namespace pteryx::ops::testing
