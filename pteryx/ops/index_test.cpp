// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "pteryx/ops/testing/coords.h"
#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

// Places, some of them from the end.
TestTensor indices(DType t, const Dims& dims, int64_t extent, uint32_t seed = 7) {
  return random(t, dims, seed, -static_cast<double>(extent) + 0.51,
                static_cast<double>(extent) - 0.51);
}
TestTensor places(DType t, const Dims& dims, int64_t extent) {
  return random(t, dims, 7, 0, static_cast<double>(extent) - 0.51);
}
int64_t wrap(double i, int64_t extent) { return static_cast<int64_t>(i) + (i < 0 ? extent : 0); }

TEST(Index, RowsGoTogetherOnTheCpu) {
  for (const DType t : {DType::kF32, DType::kF16, DType::kI64, DType::kBool}) {
    const TestTensor x = random(t, {5, 70, 9}, 1);
    const TestTensor index =
        make(DType::kI64, {40, 8}, [](int64_t i) { return static_cast<double>(i * 3 % 5); });
    TestTensor y{t, {40, 8, 70, 9}, {}};
    for (const double k : index.data) {
      const auto row = x.data.begin() + static_cast<int64_t>(k) * 630;
      y.data.insert(y.data.end(), row, row + 630);
    }
    Case call("aten.embedding.default");
    call.in(x).in(index).integer(-1).flag(false).flag(false).out(t, y.dims);
    EXPECT_TRUE(is_fast(call));
    expect_op(call, {y}, kExact);
  }
}

TEST(Index, EmbeddingPicksRows) {
  for (const DType t : every_type()) {
    for (const DType it : {DType::kI32, DType::kI64}) {
      for (const Dims& ids_dims : std::vector<Dims>{{1, 7}, {5}, {}, {2, 0}, {2, 1, 3}}) {
        const TestTensor table = some(t, {9, 5});
        const TestTensor ids = places(it, ids_dims, 9);
        Dims dims = ids_dims;
        dims.push_back(5);
        const TestTensor y = moved(table, dims, [&](Coords c) {
          const int64_t column = c.back();
          c.pop_back();
          return Coords{static_cast<int64_t>(ids.data[flat(ids_dims, c)]), column};
        });
        expect_op(Case("aten.embedding.default")
                      .in(table)
                      .in(ids)
                      .integer(-1)
                      .flag(false)
                      .flag(false)
                      .out(t, dims),
                  {y}, kExact);
      }
    }
  }
}

TEST(Index, SelectsAlongAnyDim) {
  for (const DType t : every_type()) {
    const TestTensor x = some(t, {3, 4, 5});
    for (size_t dim = 0; dim < 3; ++dim) {
      TestTensor ids = places(DType::kI64, {6}, x.dims[dim]);
      Dims dims = x.dims;
      dims[dim] = 6;
      const TestTensor y = moved(x, dims, [&](Coords c) {
        c[dim] = static_cast<int64_t>(ids.data[static_cast<size_t>(c[dim])]);
        return c;
      });
      expect_op(Case("aten.index_select.default")
                    .in(x)
                    .integer(static_cast<int64_t>(dim) - 3)
                    .in(ids)
                    .out(t, dims),
                {y}, kExact);
      std::vector<std::optional<TestTensor>> list(dim + 1);
      ids.data[2] -= static_cast<double>(x.dims[dim]);  // the same place from the end
      list[dim] = ids;
      expect_op(Case("aten.index.Tensor").in(x).optional_list(list).out(t, dims), {y}, kExact);
    }
  }
}

TEST(Index, IndexMayHaveAnyRank) {
  const TestTensor x = some(DType::kF16, {3, 6, 5});
  const TestTensor ids = indices(DType::kI32, {2, 4}, 6);
  const TestTensor y = moved(x, {3, 2, 4, 5}, [&](const Coords& c) {
    return Coords{c[0], wrap(ids.data[flat({2, 4}, {c[1], c[2]})], 6), c[3]};
  });
  expect_op(Case("aten.index.Tensor")
                .in(x)
                .optional_list({std::nullopt, ids, std::nullopt})
                .out(DType::kF16, {3, 2, 4, 5}),
            {y}, kExact);
  const TestTensor one{DType::kI64, {}, {-1}};
  expect_op(Case("aten.index.Tensor").in(x).optional_list({one}).out(DType::kF16, {6, 5}),
            {moved(x, {6, 5}, [](const Coords& c) { return Coords{2, c[0], c[1]}; })}, kExact);
}

TEST(Index, SeveralIndicesBroadcast) {
  const TestTensor x = some(DType::kF32, {3, 4, 5});
  const TestTensor a = indices(DType::kI64, {2, 1}, 3, 1);
  const TestTensor b = indices(DType::kI64, {4}, 4, 2);
  const TestTensor c5 = indices(DType::kI64, {4}, 5, 3);
  // Neighbours: the index dims stand in their place.
  expect_op(Case("aten.index.Tensor").in(x).optional_list({a, b}).out(DType::kF32, {2, 4, 5}),
            {moved(x, {2, 4, 5},
                   [&](const Coords& c) {
                     return Coords{wrap(a.data[static_cast<size_t>(c[0])], 3),
                                   wrap(b.data[static_cast<size_t>(c[1])], 4), c[2]};
                   })},
            kExact);
  // Apart: they come first.
  expect_op(Case("aten.index.Tensor")
                .in(x)
                .optional_list({a, std::nullopt, c5})
                .out(DType::kF32, {2, 4, 4}),
            {moved(x, {2, 4, 4},
                   [&](const Coords& c) {
                     return Coords{wrap(a.data[static_cast<size_t>(c[0])], 3), c[2],
                                   wrap(c5.data[static_cast<size_t>(c[1])], 5)};
                   })},
            kExact);
  expect_op(
      Case("aten.index.Tensor").in(x).optional_list({std::nullopt, b, c5}).out(DType::kF32, {3, 4}),
      {moved(x, {3, 4},
             [&](const Coords& c) {
               return Coords{c[0], wrap(b.data[static_cast<size_t>(c[1])], 4),
                             wrap(c5.data[static_cast<size_t>(c[1])], 5)};
             })},
      kExact);
}

TEST(Index, Gathers) {
  for (const DType t : every_type()) {
    const TestTensor x = some(t, {4, 9, 2});
    for (size_t dim = 0; dim < 3; ++dim) {
      const TestTensor ids = places(DType::kI64, {3, 5, 2}, x.dims[dim]);
      const TestTensor y = moved(x, ids.dims, [&](Coords c) {
        c[dim] = static_cast<int64_t>(ids.data[flat(ids.dims, c)]);
        return c;
      });
      expect_op(Case("aten.gather.default")
                    .in(x)
                    .integer(static_cast<int64_t>(dim))
                    .in(ids)
                    .flag(false)
                    .out(t, ids.dims),
                {y}, kExact);
    }
  }
  const TestTensor scalar = some(DType::kF32, {});
  expect_op(Case("aten.gather.default")
                .in(scalar)
                .integer(0)
                .in(TestTensor{DType::kI64, {3}, {0, 0, 0}})
                .flag(false)
                .out(DType::kF32, {3}),
            {moved(scalar, {3}, [](const Coords&) { return Coords{}; })}, kExact);
}

TEST(Index, RefusesWhatDoesNotFit) {
  const TestTensor x = some(DType::kF32, {4, 3});
  expect_error(Case("aten.gather.default")
                   .in(x)
                   .integer(0)
                   .in(TestTensor{DType::kI64, {1, 4}, {0, 0, 0, 0}})
                   .flag(false)
                   .out(DType::kF32, {1, 4}),
               "index [1, 4] does not fit x [4, 3] along dim 0");
  expect_error(
      Case("aten.index.Tensor").in(x).optional_list({std::nullopt}).out(DType::kF32, {4, 3}),
      "indices: all of them are None");
  const TestTensor a = indices(DType::kI64, {2}, 3);
  const TestTensor b = indices(DType::kI64, {3}, 3);
  expect_error(Case("aten.index.Tensor").in(x).optional_list({a, b}).out(DType::kF32, {3}),
               "indices: [2] and [3] do not broadcast");
  expect_error(Case("aten.index.Tensor").in(x).optional_list({a, a, a}).out(DType::kF32, {2}),
               "indices: more indices than the 2 dims of x");
}

}  // namespace
}  // namespace pteryx::ops::testing
