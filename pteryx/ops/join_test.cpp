// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "pteryx/ops/testing/coords.h"
#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

// Members of `extents` entries along `dim`, and what they join to.
struct Joined {
  std::vector<TestTensor> members;
  TestTensor y;
};
Joined join_along(DType t, Dims dims, size_t dim, const std::vector<int64_t>& extents) {
  Joined j;
  dims[dim] = 0;
  std::vector<std::pair<size_t, int64_t>> from;  // member and its coordinate, for each entry of y
  for (const int64_t extent : extents) {
    Dims own = dims;
    own[dim] = extent;
    j.members.push_back(some(t, own, static_cast<uint32_t>(j.members.size() + 1)));
    for (int64_t k = 0; k < extent; ++k) from.emplace_back(j.members.size() - 1, k);
  }
  dims[dim] = static_cast<int64_t>(from.size());
  j.y = tabulate(t, dims, [&](Coords c) {
    const auto [member, k] = from[static_cast<size_t>(c[dim])];
    c[dim] = k;
    return j.members[member].data[flat(j.members[member].dims, c)];
  });
  return j;
}

TEST(Join, CatOfEveryTypeAlongEveryDim) {
  for (const DType t : every_type()) {
    for (const auto& extents :
         std::vector<std::vector<int64_t>>{{5}, {5, 2}, {1, 0, 3}, {3, 1, 4, 1, 5, 9, 2, 6, 5}}) {
      for (size_t dim = 0; dim < 3; ++dim) {
        const Joined j = join_along(t, {3, 2, 5}, dim, extents);
        expect_op(Case("aten.cat.default")
                      .list(j.members)
                      .integer(static_cast<int64_t>(dim) - 3)
                      .out(t, j.y.dims),
                  {j.y}, kExact);
      }
    }
  }
}

// Pieces of whole vectors; nine of them are two dispatches.
TEST(Join, CatOfVectors) {
  for (const DType t : {DType::kF32, DType::kF16, DType::kBool}) {
    for (const auto& extents :
         std::vector<std::vector<int64_t>>{{5, 2}, {3, 1, 4, 1, 5, 9, 2, 6, 5}}) {
      const Joined j = join_along(t, {3, 2, 16}, 1, extents);
      expect_op(Case("aten.cat.default").list(j.members).integer(1).out(t, j.y.dims), {j.y},
                kExact);
    }
  }
}

TEST(Join, CatOfManyAndOfNothing) {
  const Joined many = join_along(DType::kF16, {3, 1}, 1, std::vector<int64_t>(40, 1));
  expect_op(Case("aten::cat.out").list(many.members).integer(1).out(DType::kF16, {3, 40}), {many.y},
            kExact);
  const TestTensor nothing{DType::kF32, {0}, {}};
  const TestTensor x = some(DType::kF32, {2, 3});
  expect_op(
      Case("aten.cat.default").list({nothing, x, nothing}).integer(1).out(DType::kF32, {2, 3}), {x},
      kExact);
  expect_op(Case("aten.cat.default").list({nothing, nothing}).integer(0).out(DType::kF32, {0}),
            {nothing}, kExact);
  const TestTensor empty{DType::kF32, {0, 3}, {}};
  expect_op(Case("aten.cat.default").list({empty, empty}).integer(1).out(DType::kF32, {0, 6}),
            {TestTensor{DType::kF32, {0, 6}, {}}}, kExact);
}

TEST(Join, CatPromotesToTheResultsType) {
  const TestTensor a{DType::kI32, {2}, {1, -2}};
  const TestTensor b{DType::kF32, {2}, {0.5, 3}};
  expect_op(Case("aten.cat.default").list({a, b}).integer(0).out(DType::kF32, {4}),
            {TestTensor{DType::kF32, {4}, {1, -2, 0.5, 3}}}, kExact);
}

TEST(Join, Stacks) {
  for (const DType t : every_type()) {
    const std::vector<TestTensor> members = {some(t, {3, 5}, 1), some(t, {3, 5}, 2),
                                             some(t, {3, 5}, 3)};
    for (size_t dim = 0; dim < 3; ++dim) {
      Dims dims = {3, 5};
      dims.insert(dim, 3);
      const TestTensor y = tabulate(t, dims, [&](Coords c) {
        const auto member = static_cast<size_t>(c[dim]);
        c.erase(c.begin() + static_cast<ptrdiff_t>(dim));
        return members[member].data[flat({3, 5}, c)];
      });
      expect_op(Case("aten.stack.default")
                    .list(members)
                    .integer(static_cast<int64_t>(dim) - 3)
                    .out(t, dims),
                {y}, kExact);
    }
  }
  expect_op(
      Case("aten.stack.default")
          .list({some(DType::kF32, {}, 1), some(DType::kF32, {}, 2)})
          .integer(0)
          .out(DType::kF32, {2}),
      {TestTensor{
          DType::kF32, {2}, {some(DType::kF32, {}, 1).data[0], some(DType::kF32, {}, 2).data[0]}}},
      kExact);
}

TEST(Join, WritesSlicesIntoACopy) {
  struct {
    int64_t start, end, step, first, length;
  } const cases[] = {
      {1, 4, 1, 1, 3}, {0, 7, 1, 0, 7}, {-2, 100, 1, 5, 2}, {1, 6, 2, 1, 3}, {3, 3, 1, 3, 0}};
  for (const DType t : every_type()) {
    const TestTensor x = some(t, {2, 7, 3}, 1);
    for (const auto& c : cases) {
      const TestTensor src = some(t, {2, c.length, 3}, 2);
      const TestTensor y = tabulate(t, x.dims, [&](const Coords& i) {
        const int64_t k = i[1] - c.first;
        const bool inside = k >= 0 && k % c.step == 0 && k / c.step < c.length;
        return inside ? src.data[flat(src.dims, {i[0], k / c.step, i[2]})]
                      : x.data[flat(x.dims, i)];
      });
      expect_op(Case("aten.slice_scatter.default")
                    .in(x)
                    .in(src)
                    .integer(1)
                    .integer(c.start)
                    .integer(c.end)
                    .integer(c.step)
                    .out(t, x.dims),
                {y}, kExact);
    }
    const TestTensor src = some(t, {2, 7}, 3);
    const TestTensor y = tabulate(t, x.dims, [&](const Coords& i) {
      return i[2] == 1 ? src.data[flat(src.dims, {i[0], i[1]})] : x.data[flat(x.dims, i)];
    });
    expect_op(
        Case("aten.select_scatter.default").in(x).in(src).integer(-1).integer(-2).out(t, x.dims),
        {y}, kExact);
  }
}

TEST(Join, RefusesWhatDoesNotGoTogether) {
  const TestTensor a = some(DType::kF32, {2, 3});
  expect_error(Case("aten.cat.default")
                   .list({a, some(DType::kF32, {3, 3})})
                   .integer(1)
                   .out(DType::kF32, {2, 6}),
               "tensors: member 1 [3, 3] does not go with [2, 3] along dim 1");
  expect_error(Case("aten.cat.default")
                   .list({a, some(DType::kF32, {2})})
                   .integer(1)
                   .out(DType::kF32, {2, 6}),
               "tensors: member 1 [2] does not go with [2, 3] along dim 1");
  expect_error(Case("aten.cat.default").list({}).integer(0).out(DType::kF32, {2}),
               "tensors: the list is empty");
  expect_error(
      Case("aten.cat.default").optional_list({a, std::nullopt}).integer(0).out(DType::kF32, {2, 3}),
      "tensors: member 1 is None");
  expect_error(Case("aten.stack.default")
                   .list({a, some(DType::kF32, {3, 2})})
                   .integer(0)
                   .out(DType::kF32, {2, 2, 3}),
               "tensors: member 1 is [3, 2], member 0 is [2, 3]");
  expect_error(Case("aten.slice_scatter.default")
                   .in(a)
                   .in(a)
                   .integer(0)
                   .integer(0)
                   .integer(1)
                   .integer(1)
                   .out(DType::kF32, {2, 3}),
               "src (value 1) shape: expected [1, 3], got [2, 3]");
}

}  // namespace
}  // namespace pteryx::ops::testing
