// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "pteryx/ops/testing/coords.h"
#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

int64_t wrap(double i, int64_t extent) { return static_cast<int64_t>(i) + (i < 0 ? extent : 0); }

// Distinct places: a permutation.
TestTensor places(const Dims& dims, size_t dim, int64_t extent) {
  return tabulate(DType::kI64, dims, [&](const Coords& c) {
    int64_t sum = 0;
    for (size_t d = 0; d < c.size(); ++d) sum += d == dim ? 0 : c[d];
    return (c[dim] * (extent - 1) + sum) % extent;
  });
}

TEST(Put, ScattersAlongAnyDim) {
  for (const DType t : every_type()) {
    const TestTensor x = some(t, {4, 5, 3}, 1);
    const TestTensor src = some(t, {3, 4, 3}, 2);
    for (size_t dim = 0; dim < 3; ++dim) {
      const TestTensor index = places({3, 2, 3}, dim, x.dims[dim]);
      TestTensor replaced = x;
      TestTensor filled = x;
      for (int64_t i = 0; i < numel(index.dims); ++i) {
        const Coords from = coords(index.dims, i);
        Coords to = from;
        to[dim] = static_cast<int64_t>(index.data[static_cast<size_t>(i)]);
        replaced.data[flat(x.dims, to)] = src.data[flat(src.dims, from)];
        filled.data[flat(x.dims, to)] = 1;
      }
      const auto d = static_cast<int64_t>(dim) - 3;
      expect_op(Case("aten.scatter.src").in(x).integer(d).in(index).in(src).out(t, x.dims),
                {replaced}, kExact);
      expect_op(Case("aten.scatter.value").in(x).integer(d).in(index).number(1.0).out(t, x.dims),
                {filled}, kExact);
    }
  }
}

TEST(Put, ScatterAddSumsWhatMeets) {
  for (const DType t : {DType::kF32, DType::kF16, DType::kI32, DType::kI8, DType::kI64}) {
    const TestTensor x = random(t, {3, 5}, 1, -8, 8);
    const TestTensor src = random(t, {7, 5}, 2, -8, 8);
    const TestTensor index = random(DType::kI64, {7, 4}, 3, 0, 2.49);
    TestTensor y = x;
    for (int64_t i = 0; i < numel(index.dims); ++i) {
      const Coords c = coords(index.dims, i);
      y.data[flat(x.dims, {static_cast<int64_t>(index.data[static_cast<size_t>(i)]), c[1]})] +=
          src.data[flat(src.dims, c)];
    }
    expect_op(Case("aten.scatter_add.default").in(x).integer(0).in(index).in(src).out(t, x.dims),
              {y}, t == DType::kF16 ? Tolerance{5e-2, 2e-3} : Tolerance{1e-5, 1e-6});
  }
}

TEST(Put, ScatterTakesScalarsAndNothing) {
  const TestTensor x{DType::kF32, {}, {3}};
  const TestTensor src{DType::kF32, {}, {5}};
  expect_op(Case("aten.scatter.src")
                .in(x)
                .integer(0)
                .in(TestTensor{DType::kI64, {}, {0}})
                .in(src)
                .out(DType::kF32, {}),
            {src}, kExact);
  const TestTensor rows = some(DType::kF32, {2, 3});
  expect_op(Case("aten.scatter.value")
                .in(rows)
                .integer(0)
                .in(TestTensor{DType::kI64, {0}, {}})
                .number(1)
                .out(DType::kF32, {2, 3}),
            {rows}, kExact);
}

TEST(Put, IndexPutAtOneIndex) {
  for (const DType t : every_type()) {
    const TestTensor x = some(t, {3, 5, 2}, 1);
    const TestTensor index{DType::kI64, {3}, {4, -5, 2}};
    for (const Dims& dims : std::vector<Dims>{{3, 3, 2}, {3, 1}, {}, {2}}) {
      const TestTensor values = some(t, dims, 2);
      TestTensor y = x;
      for (int64_t i = 0; i < 18; ++i) {
        const Coords c = coords({3, 3, 2}, i);
        Coords from(c.end() - static_cast<ptrdiff_t>(dims.rank()), c.end());
        for (size_t d = 0; d < dims.rank(); ++d) from[d] = dims[d] == 1 ? 0 : from[d];
        y.data[flat(x.dims, {c[0], wrap(index.data[static_cast<size_t>(c[1])], 5), c[2]})] =
            values.data[flat(dims, from)];
      }
      for (const char* op : {"aten.index_put.default", "aten::index_put_"}) {
        expect_op(Case(op)
                      .in(x)
                      .optional_list({std::nullopt, index})
                      .in(values)
                      .flag(false)
                      .out(t, x.dims),
                  {y}, kExact);
      }
    }
    const TestTensor values = some(t, {3, 3, 2}, 2);
    TestTensor y = x;
    for (int64_t i = 0; i < 18; ++i) {
      const Coords c = coords(values.dims, i);
      y.data[flat(x.dims, {c[0], wrap(index.data[static_cast<size_t>(c[1])], 5), c[2]})] =
          values.data[static_cast<size_t>(i)];
    }
    const TestTensor places{DType::kI64, {3}, {4, 0, 2}};
    expect_op(Case("aten.index_copy.default").in(x).integer(1).in(places).in(values).out(t, x.dims),
              {y}, kExact);
  }
}

TEST(Put, IndexPutAccumulates) {
  for (const DType t : {DType::kF32, DType::kI32, DType::kI64}) {
    const TestTensor x = random(t, {7, 4}, 1, -9, 9);
    const TestTensor values = random(t, {3, 4}, 2, -9, 9);
    const TestTensor index{DType::kI64, {3}, {2, -5, 2}};
    TestTensor y = x;
    for (size_t i = 0; i < 12; ++i) y.data[8 + i % 4] += values.data[i];
    expect_op(Case("aten::index_put.out")
                  .in(x)
                  .optional_list({index})
                  .in(values)
                  .flag(true)
                  .out(t, x.dims),
              {y}, {1e-5, 1e-6});
  }
}

TEST(Put, IndexPutAtSeveralIndicesAndMasks) {
  const TestTensor x = some(DType::kF32, {3, 4}, 1);
  const TestTensor rows{DType::kI64, {2, 1}, {0, 2}};
  const TestTensor columns{DType::kI64, {2}, {3, 1}};
  const TestTensor values{DType::kF32, {2}, {10, 20}};
  TestTensor y = x;
  for (const size_t r : {0U, 2U}) {
    y.data[r * 4 + 3] = 10;
    y.data[r * 4 + 1] = 20;
  }
  expect_op(Case("aten.index_put.default")
                .in(x)
                .optional_list({rows, columns})
                .in(values)
                .flag(false)
                .out(DType::kF32, {3, 4}),
            {y}, kExact);
  const TestTensor mask{DType::kBool, {3, 4}, {0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0}};
  TestTensor masked = x;
  masked.data[1] = 10;
  masked.data[7] = 20;
  expect_op(Case("aten.index_put.default")
                .in(x)
                .optional_list({mask})
                .in(values)
                .flag(false)
                .out(DType::kF32, {3, 4}),
            {masked}, kExact);
}

TEST(Put, MaskedScatterTakesInOrder) {
  const TestTensor x{DType::kF32, {2, 3}, {1, 2, 3, 4, 5, 6}};
  const TestTensor mask{DType::kBool, {3}, {1, 0, 1}};
  const TestTensor source{DType::kF32, {5}, {10, 20, 30, 40, 50}};
  expect_op(Case("aten::masked_scatter.out").in(x).in(mask).in(source).out(DType::kF32, {2, 3}),
            {TestTensor{DType::kF32, {2, 3}, {10, 2, 20, 30, 5, 40}}}, kExact);
  const auto got =
      run(Case("aten.masked_scatter.default").in(x).in(mask).in(mask).out(DType::kF32, {2, 3}),
          Where::kCpu);
  ASSERT_FALSE(got.ok());
  EXPECT_NE(got.status().message().find("the mask takes 4 elements, source has 3"),
            std::string_view::npos);
}

TEST(Put, RefusesWhatDoesNotFit) {
  const TestTensor x = some(DType::kF32, {4, 3});
  const TestTensor index{DType::kI64, {1, 4}, {0, 0, 0, 0}};
  expect_error(Case("aten.scatter.src").in(x).integer(0).in(index).in(x).out(DType::kF32, {4, 3}),
               "index [1, 4] and src [4, 3] do not fit x [4, 3] along dim 0");
  expect_error(Case("aten.index_put.default")
                   .in(x)
                   .optional_list({TestTensor{DType::kI64, {2}, {0, 1}}})
                   .in(x)
                   .flag(false)
                   .out(DType::kF32, {4, 3}),
               "values [4, 3] do not broadcast to [2, 3]");
}

}  // namespace
}  // namespace pteryx::ops::testing
