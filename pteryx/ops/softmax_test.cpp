// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

TestTensor reference(const TestTensor& x, size_t dim, bool log) {
  TestTensor y = x;
  size_t inner = 1;
  for (size_t i = dim + 1; i < x.dims.rank(); ++i) inner *= static_cast<size_t>(x.dims[i]);
  const size_t length = x.dims.empty() ? 1 : static_cast<size_t>(x.dims[dim]);
  for (size_t r = 0; r < x.data.size() / length; ++r) {
    const size_t base = r / inner * inner * length + r % inner;
    double peak = x.data[base];
    for (size_t k = 0; k < length; ++k) peak = std::max(peak, x.data[base + k * inner]);
    double total = 0;
    for (size_t k = 0; k < length; ++k) total += std::exp(x.data[base + k * inner] - peak);
    for (size_t k = 0; k < length; ++k) {
      const double d = x.data[base + k * inner] - peak;
      y.data[base + k * inner] = log ? d - std::log(total) : std::exp(d) / total;
    }
  }
  return y;
}

void check(const TestTensor& x, int64_t dim, bool log, Tolerance tol) {
  const auto rank = static_cast<int64_t>(x.dims.rank());
  const auto at = static_cast<size_t>(dim < 0 && rank > 0 ? dim + rank : std::max<int64_t>(dim, 0));
  expect_op(Case(log ? "aten._log_softmax.default" : "aten._softmax.default")
                .in(x)
                .integer(dim)
                .flag(false)
                .out(x.dtype, x.dims),
            {reference(x, at, log)}, tol);
}

struct Shape {
  Dims dims;
  int64_t dim;
};
const Shape kShapes[] = {{{1, 1}, -1},
                         {{7, 33}, 1},
                         {{7, 33}, 0},
                         {{3, 4, 5}, 1},
                         {{2, 64, 3}, 1},
                         {{2, 2, 5, 5}, 3},
                         {{3, 129}, -1},
                         {{2, 1030}, -1},
                         {{9}, 0},
                         {{}, 0},
                         {{4, 1}, 1},
                         {{2, 300, 20}, -2},
                         {{1, 2, 1, 2, 3, 1, 2, 5}, 4}};

TEST(Softmax, MatchesReferenceOverAnyDim) {
  for (const Shape& s : kShapes) {
    const TestTensor x = random(DType::kF32, s.dims, 1, -9, 9);
    check(x, s.dim, false, {1e-6, 1e-5});
    check(x, s.dim, true, {1e-5, 1e-5});
  }
}

TEST(Softmax, VectorsOfTheCpuTakeEveryDim) {
  for (const DType t : {DType::kF32, DType::kF16}) {
    const TestTensor x = random(t, {20, 70, 43}, 1, -9, 9);
    for (const int64_t dim : {0, 1, 2}) {
      for (const bool log : {false, true}) {
        EXPECT_TRUE(is_fast(Case(log ? "aten._log_softmax.default" : "aten._softmax.default")
                                .in(x)
                                .integer(dim)
                                .flag(false)
                                .out(t, x.dims)));
        check(x, dim, log, t == DType::kF16 ? Tolerance{1e-3, 2e-3} : Tolerance{1e-6, 1e-5});
      }
    }
  }
}

TEST(Softmax, HalvesOfEvenAndOddRows) {
  for (const Shape& s :
       {Shape{{5, 41}, -1}, Shape{{5, 42}, -1}, Shape{{2, 41, 3}, 1}, Shape{{3, 42, 2}, 1}}) {
    check(random(DType::kF16, s.dims, 2, -9, 9), s.dim, false, {1e-3, 2e-3});
  }
  check(random(DType::kF16, {3, 50}, 2, -9, 9), -1, true, {1e-2, 2e-3});
}

TEST(Softmax, LongRows) {
  check(random(DType::kF32, {1, 128256}, 3, -12, 12), -1, false, {1e-6, 1e-5});
  check(random(DType::kF32, {2, 32000}, 4, -12, 12), -1, true, {1e-5, 1e-5});
  check(random(DType::kF32, {300, 5000}, 4, -12, 12), -1, false, {1e-6, 1e-5});
  check(random(DType::kF16, {1, 9001}, 4, -9, 9), -1, false, {1e-3, 2e-3});
}

TEST(Softmax, EmptyTensors) {
  check({DType::kF32, {0, 5}, {}}, 1, false, kExact);
  check({DType::kF32, {3, 0}, {}}, 0, false, kExact);
}

TEST(Softmax, MaskedAndExtremeEntries) {
  const double low = -3.4028234663852886e38;
  const double inf = std::numeric_limits<double>::infinity();
  const TestTensor x{DType::kF32,
                     {5, 3},
                     {low, low, low, 1, -inf, 1, -inf, -inf, 7, 1e30, -1e30, 0, low, 3e38, low}};
  const TestTensor y{
      DType::kF32, {5, 3}, {1.0 / 3, 1.0 / 3, 1.0 / 3, 0.5, 0, 0.5, 0, 0, 1, 1, 0, 0, 0, 1, 0}};
  expect_op(Case("aten._softmax.default").in(x).integer(-1).flag(false).out(DType::kF32, {5, 3}),
            {y}, {1e-6, 0});
}

TEST(Softmax, RefusesADimThatIsNotThere) {
  expect_error(Case("aten._softmax.default")
                   .in(random(DType::kF32, {2, 3}))
                   .integer(2)
                   .flag(false)
                   .out(DType::kF32, {2, 3}),
               "aten._softmax.default");
}

}  // namespace
}  // namespace pteryx::ops::testing
