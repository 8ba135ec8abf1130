// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

size_t at(int64_t i) { return static_cast<size_t>(i); }

// Scale and zero point of each row, in double.
std::vector<TestTensor> reference(const TestTensor& x, int64_t rows, const Dims& dims,
                                  DType zero_type, double qmin, double qmax,
                                  double eps = std::ldexp(1.0, -23)) {
  TestTensor scale{DType::kF32, dims, {}};
  TestTensor zero{zero_type, dims, {}};
  const int64_t length = rows == 0 ? 0 : numel(x.dims) / rows;
  for (int64_t r = 0; r < rows; ++r) {
    double lo = 0;
    double hi = 0;
    for (int64_t i = 0; i < length; ++i) {
      lo = std::min(lo, x.data[at(r * length + i)]);
      hi = std::max(hi, x.data[at(r * length + i)]);
    }
    const double s = std::max((hi - lo) / (qmax - qmin), eps);
    scale.data.push_back(s);
    zero.data.push_back(std::clamp(qmin - std::nearbyint(lo / s), qmin, qmax));
  }
  return {scale, zero};
}

// Rows of every kind, away from ties: the quotient of the smallest value by the scale ends in .25.
TestTensor rows_of(const Dims& dims, DType t = DType::kF32) {
  const int64_t length = dims.back();
  const TestTensor noise = random(DType::kF32, dims, 5, -0.99, 0.99);
  return make(t, dims, [&](int64_t i) {
    const int64_t r = i / length;
    if (r % 5 == 1) return 0.0;  // nothing but zeros
    const double v = noise.data[at(i)];
    if (r % 5 == 2) return i % length == 0 ? 7.0 : std::fabs(v);    // positive, with an outlier
    if (r % 5 == 3) return i % length == 0 ? -3.0 : -std::fabs(v);  // negative
    if (i % length == 0) return 1.0;
    return i % length == 1 ? -(100.25 / 154.75) : 0.6 * v;
  });
}

Case affine(const TestTensor& x, const Dims& block, const Dims& dims) {
  Case c("torchao.choose_qparams_affine.default");
  std::vector<int64_t> sizes(block.begin(), block.end());
  c.in(x)
      .text("ASYMMETRIC")
      .ints(sizes)
      .none()
      .integer(-128)
      .integer(127)
      .none()
      .none()
      .none()
      .flag(false);
  return c.outs({{DType::kF32, dims, {}}, {DType::kI8, dims, {}}});
}

TEST(ChooseQparams, OnePairForEachRow) {
  for (const int64_t rows : {1, 2, 3, 4, 5, 7, 64}) {
    const TestTensor x = rows_of({1, rows, 100});
    expect_op(affine(x, {1, 1, 100}, {1, rows}),
              reference(x, rows, {1, rows}, DType::kI8, -128, 127), {0, 1e-6});
  }
  const TestTensor x = rows_of({3, 2048});
  expect_op(affine(x, {1, 2048}, {3}), reference(x, 3, {3}, DType::kI8, -128, 127), {0, 1e-6});
}

TEST(ChooseQparams, KeepsTheDimWhereTheFileDoes) {
  const TestTensor x = rows_of({2, 3, 32});
  expect_op(affine(x, {1, 1, 32}, {2, 3, 1}), reference(x, 6, {2, 3, 1}, DType::kI8, -128, 127),
            {0, 1e-6});
}

TEST(ChooseQparams, NoRows) {
  const TestTensor x = rows_of({1, 0, 32});
  expect_op(affine(x, {1, 1, 32}, {1, 0}), reference(x, 0, {1, 0}, DType::kI8, -128, 127),
            {0, 1e-6});
}

TEST(ChooseQparams, OnePairForAll) {
  const TestTensor x = random(DType::kF32, {3, 5, 7}, 6, -1.37, 2);
  for (const DType t : {DType::kI32, DType::kI64}) {
    expect_op(Case("quantized_decomposed.choose_qparams.tensor")
                  .in(x)
                  .integer(0)
                  .integer(255)
                  .number(1e-5)
                  .none()
                  .outs({{DType::kF32, {1}, {}}, {t, {1}, {}}}),
              reference(x, 1, {1}, t, 0, 255, 1e-5), {0, 1e-6});
  }
}

// Rows of zeros take their zero point from the other end.
TEST(ChooseQparams, PerTokenAsymmetric) {
  const TestTensor x = rows_of({2, 5, 12});
  std::vector<TestTensor> want = reference(x, 10, {2, 5, 1}, DType::kI32, -128, 127);
  want[1].data[1] = want[1].data[6] = 127;
  expect_op(Case("quantized_decomposed.choose_qparams_per_token_asymmetric.default")
                .in(x)
                .none()
                .outs({{DType::kF32, {2, 5, 1}, {}}, {DType::kI32, {2, 5, 1}, {}}}),
            want, {0, 1e-6});
}

TEST(ChooseQparams, Refusals) {
  const TestTensor x = rows_of({2, 32});
  expect_error(affine(x, {1, 16}, {2}), "block_size [1, 16] for x [2, 32]: only whole rows");
  expect_error(Case("torchao.choose_qparams_affine.default")
                   .in(x)
                   .text("SYMMETRIC")
                   .ints({1, 32})
                   .none()
                   .integer(-128)
                   .integer(127)
                   .none()
                   .none()
                   .none()
                   .flag(false)
                   .outs({{DType::kF32, {2}, {}}, {DType::kI8, {2}, {}}}),
               "mapping_type SYMMETRIC: only ASYMMETRIC");
  expect_error(Case("quantized_decomposed.choose_qparams.tensor")
                   .in(x)
                   .integer(5)
                   .integer(5)
                   .number(0)
                   .none()
                   .outs({{DType::kF32, {1}, {}}, {DType::kI32, {1}, {}}}),
               "codes from 5 to 5");
}

}  // namespace
}  // namespace pteryx::ops::testing
