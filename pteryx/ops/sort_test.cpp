// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/coords.h"
#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

struct Sorted {
  TestTensor values;
  TestTensor indices;
};
Sorted reference(const TestTensor& x, size_t dim, bool descending, int64_t count) {
  Dims dims = x.dims;
  if (!dims.empty()) dims[dim] = count;
  Sorted out{make(x.dtype, dims, [](int64_t) { return 0; }),
             make(DType::kI64, dims, [](int64_t) { return 0; })};
  for (int64_t i = 0; i < numel(dims); ++i) {
    Coords c = coords(dims, i);
    if (!c.empty() && c[dim] != 0) continue;
    std::vector<std::pair<double, int64_t>> row;
    for (int64_t k = 0; k < (x.dims.empty() ? 1 : x.dims[dim]); ++k) {
      Coords from = c;
      if (!from.empty()) from[dim] = k;
      row.emplace_back(x.data[flat(x.dims, from)], k);
    }
    std::stable_sort(row.begin(), row.end(), [&](const auto& a, const auto& b) {
      const double l = descending ? b.first : a.first;
      const double r = descending ? a.first : b.first;
      return std::isnan(r) ? !std::isnan(l) : l < r;
    });
    for (int64_t k = 0; k < count; ++k) {
      if (!c.empty()) c[dim] = k;
      out.values.data[flat(dims, c)] = row[static_cast<size_t>(k)].first;
      out.indices.data[flat(dims, c)] = static_cast<double>(row[static_cast<size_t>(k)].second);
    }
  }
  return out;
}

TEST(Sort, SortsEveryTypeAlongEveryDim) {
  for (const DType t : every_type()) {
    for (const Dims& dims : std::vector<Dims>{{}, {9}, {3, 70}, {2, 5, 3}, {0, 3}}) {
      const TestTensor x = random(t, dims, 1, t == DType::kU8 ? 0 : -9, 9);
      for (size_t dim = 0; dim < std::max<size_t>(dims.rank(), 1); ++dim) {
        const int64_t extent = dims.empty() ? 1 : dims[dim];
        for (const bool descending : {false, true}) {
          const Sorted want = reference(x, dim, descending, extent);
          expect_op(Case("aten::sort.values")
                        .in(x)
                        .integer(static_cast<int64_t>(dim))
                        .flag(descending)
                        .outs({want.values, want.indices}),
                    {want.values, want.indices}, kExact);
        }
      }
    }
  }
}

TEST(Sort, TopkKeepsTheFirst) {
  for (const DType t : {DType::kF32, DType::kF16, DType::kI32}) {
    const TestTensor x = random(t, {2, 30, 3}, 1, -9, 9);
    for (const int64_t k : {0, 1, 7, 30}) {
      for (const bool largest : {false, true}) {
        const Sorted want = reference(x, 1, largest, k);
        expect_op(Case("aten::topk.values")
                      .in(x)
                      .integer(k)
                      .integer(-2)
                      .flag(largest)
                      .flag(true)
                      .outs({want.values, want.indices}),
                  {want.values, want.indices}, kExact);
      }
    }
  }
  const TestTensor x = random(DType::kF32, {4});
  expect_error(Case("aten.topk.default")
                   .in(x)
                   .integer(5)
                   .integer(0)
                   .flag(true)
                   .flag(true)
                   .outs({x, random(DType::kI32, {4})}),
               "k: 5 of 4 elements");
}

TEST(Sort, NanIsTheLargestAndTiesKeepTheirOrder) {
  const double nan = std::nan("");
  const double inf = std::numeric_limits<double>::infinity();
  const TestTensor x{DType::kF32, {9}, {0.0, nan, -0.0, inf, -1, nan, -inf, 2, 0.0}};
  for (const bool descending : {false, true}) {
    const Sorted want = reference(x, 0, descending, 9);
    expect_op(Case("aten.sort.stable")
                  .in(x)
                  .flag(true)
                  .integer(0)
                  .flag(descending)
                  .outs({want.values, want.indices}),
              {want.values, want.indices}, kExact);
    expect_op(Case("aten.argsort.default").in(x).integer(0).flag(descending).out(DType::kI64, {9}),
              {want.indices}, kExact);
  }
}

}  // namespace
}  // namespace pteryx::ops::testing
