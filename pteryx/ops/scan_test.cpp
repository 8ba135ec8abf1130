// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "pteryx/ops/testing/coords.h"
#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

TestTensor running(const TestTensor& x, DType t, size_t dim, bool product) {
  TestTensor y{t, x.dims, x.data};
  for (int64_t i = 0; i < numel(x.dims); ++i) {
    Coords c = coords(x.dims, i);
    if (c.empty() || c[dim] == 0) continue;
    --c[dim];
    double& v = y.data[static_cast<size_t>(i)];
    const double before = y.data[flat(x.dims, c)];
    v = product ? v * before : v + before;
  }
  return y;
}

TEST(Scan, CumsumAlongEveryDim) {
  for (const DType t : {DType::kF32, DType::kF16, DType::kI32, DType::kI64, DType::kF64}) {
    for (const Dims& dims :
         std::vector<Dims>{{}, {9}, {3, 70}, {2, 5, 3}, {0, 3}, {3, 0}, {2, 1, 2, 1, 3, 1, 2, 2}}) {
      const TestTensor x = random(t, dims, 1, -3, 3);
      for (size_t dim = 0; dim < std::max<size_t>(dims.rank(), 1); ++dim) {
        expect_op(Case("aten.cumsum.default")
                      .in(x)
                      .integer(static_cast<int64_t>(dim))
                      .none()
                      .out(t, dims),
                  {running(x, t, dim, false)},
                  t == DType::kF16 ? Tolerance{2e-2, 2e-3} : Tolerance{1e-4, 1e-5});
      }
    }
  }
}

TEST(Scan, CumsumCountsInAWiderType) {
  const TestTensor mask = random(DType::kBool, {2, 9}, 1);
  for (const DType t : {DType::kI32, DType::kI64, DType::kF32}) {
    expect_op(Case("aten::cumsum.out").in(mask).integer(-1).integer(4).out(t, {2, 9}),
              {running(mask, t, 1, false)}, kExact);
  }
}

TEST(Scan, Cumprod) {
  for (const DType t : {DType::kF32, DType::kI32, DType::kI64}) {
    const TestTensor x = random(t, {3, 5, 2}, 1, -3, 3);
    expect_op(Case("aten::cumprod.out").in(x).integer(1).none().out(t, x.dims),
              {running(x, t, 1, true)}, {1e-5, 1e-5});
  }
}

}  // namespace
}  // namespace pteryx::ops::testing
