// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "pteryx/ops/testing/coords.h"
#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

using Rule = double (*)(double, double);
double either(double a, double b) { return a != 0 || b != 0 ? 1 : 0; }
double both(double a, double b) { return a != 0 && b != 0 ? 1 : 0; }

TestTensor reference(const TestTensor& x, const std::vector<size_t>& dims, bool keep, DType t,
                     double unit, Rule f) {
  Dims y;
  std::vector<bool> folded(x.dims.rank());
  for (const size_t d : dims) folded[d] = true;
  for (size_t d = 0; d < x.dims.rank(); ++d) {
    if (!folded[d] || keep) y.push_back(folded[d] ? 1 : x.dims[d]);
  }
  TestTensor out = make(t, y, [&](int64_t) { return unit; });
  for (int64_t i = 0; i < numel(x.dims); ++i) {
    Coords to;
    for (size_t d = 0; const int64_t c : coords(x.dims, i)) {
      if (!folded[d] || keep) to.push_back(folded[d] ? 0 : c);
      ++d;
    }
    double& v = out.data[flat(y, to)];
    v = f(v, x.data[static_cast<size_t>(i)]);
  }
  return out;
}

TEST(AnyAll, AnyAndAllOverEveryDim) {
  for (const DType t : {DType::kBool, DType::kF32, DType::kI64, DType::kF16}) {
    for (const Dims& dims : std::vector<Dims>{{5}, {3, 70}, {2, 5, 3}, {0, 3}, {3, 0}}) {
      const TestTensor x = random(t, dims, 5, -1, 1);
      for (size_t dim = 0; dim < dims.rank(); ++dim) {
        for (const bool keep : {false, true}) {
          const TestTensor any = reference(x, {dim}, keep, DType::kBool, 0, either);
          const TestTensor all = reference(x, {dim}, keep, DType::kBool, 1, both);
          const auto d = static_cast<int64_t>(dim) - static_cast<int64_t>(dims.rank());
          expect_op(Case("aten::any.out").in(x).integer(d).flag(keep).out(DType::kBool, any.dims),
                    {any}, kExact);
          expect_op(Case("aten::all.out").in(x).integer(d).flag(keep).out(DType::kBool, all.dims),
                    {all}, kExact);
        }
      }
    }
  }
}

TEST(AnyAll, AnyAndAllOverSomeOrAllDims) {
  const TestTensor x = make(DType::kBool, {3, 2, 5}, [](int64_t i) { return i % 7 == 3 ? 1 : 0; });
  const TestTensor some_dims = reference(x, {0, 2}, false, DType::kBool, 0, either);
  expect_op(Case("aten::any.dims_out").in(x).ints({0, -1}).flag(false).out(DType::kBool, {2}),
            {some_dims}, kExact);
  const TestTensor whole{DType::kBool, {}, {1}};
  expect_op(Case("aten::any.dims_out").in(x).none().flag(false).out(DType::kBool, {}), {whole},
            kExact);
  expect_op(Case("aten::any.all_out").in(x).out(DType::kBool, {}), {whole}, kExact);
  expect_op(Case("aten::all.all_out").in(x).out(DType::kBool, {}),
            {TestTensor{DType::kBool, {}, {0}}}, kExact);
  expect_op(Case("aten.all.default").in(TestTensor{DType::kF32, {0}, {}}).out(DType::kBool, {}),
            {whole}, kExact);
}

}  // namespace
}  // namespace pteryx::ops::testing
