// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/coords.h"
#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();

TEST(Movement, PermutesEveryType) {
  const std::vector<std::vector<int64_t>> orders = {
      {1, 0},          {0, 2, 1, 3}, {0, -2, -1, 1},           {2, 0, 1},
      {4, 0, 3, 1, 2}, {0},          {7, 5, 3, 1, 6, 4, 2, 0}, {}};
  for (const auto& order : orders) {
    const Dims x_dims = order.size() == 8 ? Dims{2, 1, 3, 1, 2, 2, 1, 3} : [&] {
      Dims d;
      for (size_t i = 0; i < order.size(); ++i) d.push_back(static_cast<int64_t>(3 + 2 * (i % 3)));
      return d;
    }();
    Dims y_dims;
    std::vector<size_t> from;
    for (const int64_t d : order) {
      from.push_back(static_cast<size_t>(d < 0 ? d + static_cast<int64_t>(order.size()) : d));
      y_dims.push_back(x_dims[from.back()]);
    }
    for (const DType t : every_type()) {
      const TestTensor x = some(t, x_dims);
      const TestTensor y = moved(x, y_dims, [&](const Coords& c) {
        Coords s(c.size());
        for (size_t i = 0; i < c.size(); ++i) s[from[i]] = c[i];
        return s;
      });
      expect_op(Case("aten.permute_copy.default").in(x).ints(order).out(t, y_dims), {y}, kExact);
    }
  }
}

TEST(Movement, Transposes) {
  for (const DType t : {DType::kF32, DType::kI8}) {
    const TestTensor x = some(t, {3, 4, 5});
    const auto swap = [](const Coords& c) { return Coords{c[2], c[1], c[0]}; };
    expect_op(Case("aten.transpose_copy.int").in(x).integer(-1).integer(0).out(t, {5, 4, 3}),
              {moved(x, {5, 4, 3}, swap)}, kExact);
    const TestTensor m = some(t, {3, 7});
    expect_op(Case("aten.t_copy.default").in(m).out(t, {7, 3}),
              {moved(m, {7, 3}, [](const Coords& c) { return Coords{c[1], c[0]}; })}, kExact);
    expect_op(Case("aten.t_copy.default").in(some(t, {5})).out(t, {5}), {some(t, {5})}, kExact);
  }
}

TEST(Movement, SlicesLikePython) {
  struct {
    int64_t start, end, step, length, first;
  } const cases[] = {{0, 9, 1, 9, 0},      {2, 7, 2, 3, 2},  {-3, kToTheEnd, 1, 3, 6},
                     {-100, 100, 4, 3, 0}, {5, 5, 1, 0, 0},  {7, 2, 1, 0, 0},
                     {8, 9, 5, 1, 8},      {0, -1, 3, 3, 0}, {3, kToTheEnd, kToTheEnd, 1, 3}};
  for (const DType t : every_type()) {
    const TestTensor x = some(t, {2, 9, 3});
    for (const auto& c : cases) {
      const Dims dims = {2, c.length, 3};
      const TestTensor y = moved(
          x, dims, [&](const Coords& i) { return Coords{i[0], c.first + i[1] * c.step, i[2]}; });
      expect_op(Case("aten.slice_copy.Tensor")
                    .in(x)
                    .integer(1)
                    .integer(c.start)
                    .integer(c.end)
                    .integer(c.step)
                    .out(t, dims),
                {y}, kExact);
    }
  }
  const TestTensor x = some(DType::kF16, {7});
  expect_op(Case("aten.slice_copy.Tensor")
                .in(x)
                .integer(-1)
                .none()
                .none()
                .integer(1)
                .out(DType::kF16, {7}),
            {x}, kExact);
  expect_op(Case("aten.slice_copy.Tensor")
                .in(x)
                .integer(0)
                .live(2)
                .live(5)
                .number(1.0)
                .out(DType::kF16, {3}),
            {moved(x, {3}, [](const Coords& c) { return Coords{c[0] + 2}; })}, kExact);
  expect_op(
      Case("aten::narrow_copy.out").in(x).integer(0).integer(-4).integer(2).out(DType::kF16, {2}),
      {moved(x, {2}, [](const Coords& c) { return Coords{c[0] + 3}; })}, kExact);
}

TEST(Movement, SelectsFromEitherEnd) {
  for (const DType t : every_type()) {
    for (const int64_t extent : {1, 5}) {
      const TestTensor x = some(t, {3, extent, 2});
      const TestTensor last =
          moved(x, {3, 2}, [&](const Coords& c) { return Coords{c[0], extent - 1, c[1]}; });
      expect_op(Case("aten.select_copy.int").in(x).integer(1).integer(-1).out(t, {3, 2}), {last},
                kExact);
      expect_op(Case("aten.select_copy.int").in(x).integer(-2).live(extent - 1).out(t, {3, 2}),
                {last}, kExact);
    }
  }
  expect_op(Case("aten.select_copy.int")
                .in(some(DType::kF32, {1}))
                .integer(0)
                .integer(0)
                .out(DType::kF32, {}),
            {moved(some(DType::kF32, {1}), {}, [](const Coords&) { return Coords{0}; })}, kExact);
}

TEST(Movement, ExpandsAndRepeats) {
  for (const DType t : every_type()) {
    const TestTensor x = some(t, {3, 1, 5});
    const auto drop = [](const Coords& c) { return Coords{c[1], 0, c[3]}; };
    expect_op(
        Case("aten.expand_copy.default").in(x).ints({2, 3, 4, -1}).flag(false).out(t, {2, 3, 4, 5}),
        {moved(x, {2, 3, 4, 5}, drop)}, kExact);
    const TestTensor r = some(t, {3, 5});
    expect_op(Case("aten.repeat.default").in(r).ints({2, 1, 3}).out(t, {2, 3, 15}),
              {moved(r, {2, 3, 15}, [](const Coords& c) { return Coords{c[1], c[2] % 5}; })},
              kExact);
  }
  expect_op(Case("aten.expand_copy.default")
                .in(some(DType::kF32, {}))
                .ints({2, 2})
                .none()
                .out(DType::kF32, {2, 2}),
            {moved(some(DType::kF32, {}), {2, 2}, [](const Coords&) { return Coords{}; })}, kExact);
  expect_op(
      Case("aten.repeat.default").in(some(DType::kF32, {2})).ints({0, 2}).out(DType::kF32, {0, 4}),
      {TestTensor{DType::kF32, {0, 4}, {}}}, kExact);
}

TEST(Movement, FlipsAndRolls) {
  for (const DType t : every_type()) {
    const TestTensor x = some(t, {3, 4, 5});
    const auto flipped = [](const Coords& c) { return Coords{2 - c[0], c[1], 4 - c[2]}; };
    expect_op(Case("aten.flip.default").in(x).ints({0, -1}).out(t, x.dims),
              {moved(x, x.dims, flipped)}, kExact);
    const auto rolled = [](const Coords& c) {
      return Coords{c[0], (c[1] + 3) % 4, (c[2] + 2) % 5};
    };
    expect_op(Case("aten.roll.default").in(x).ints({1, -7}).ints({1, 2}).out(t, x.dims),
              {moved(x, x.dims, rolled)}, kExact);
    const auto flat_roll = [&](const Coords& c) {
      return coords(x.dims, (static_cast<int64_t>(flat(x.dims, c)) + 60 - 7) % 60);
    };
    expect_op(Case("aten::roll.out").in(x).ints({7}).ints({}).out(t, x.dims),
              {moved(x, x.dims, flat_roll)}, kExact);
  }
}

TEST(Movement, Unfolds) {
  for (const DType t : {DType::kF32, DType::kU8}) {
    const TestTensor x = some(t, {2, 3, 7});
    expect_op(Case("aten.unfold_copy.default")
                  .in(x)
                  .integer(-1)
                  .integer(5)
                  .integer(2)
                  .out(t, {2, 3, 2, 5}),
              {moved(x, {2, 3, 2, 5},
                     [](const Coords& c) { return Coords{c[0], c[1], c[2] * 2 + c[3]}; })},
              kExact);
    expect_op(Case("aten.unfold_copy.default")
                  .in(x)
                  .integer(0)
                  .integer(1)
                  .integer(3)
                  .out(t, {1, 3, 7, 1}),
              {moved(x, {1, 3, 7, 1}, [](const Coords& c) { return Coords{c[0], c[1], c[2]}; })},
              kExact);
  }
}

TEST(Movement, TakesDiagonalsAndStrides) {
  const TestTensor x = some(DType::kF16, {3, 4, 5});
  expect_op(Case("aten.diagonal_copy.default")
                .in(x)
                .integer(1)
                .integer(0)
                .integer(-1)
                .out(DType::kF16, {4, 3}),
            {moved(x, {4, 3}, [](const Coords& c) { return Coords{c[1], c[0], c[1] + 1}; })},
            kExact);
  expect_op(Case("aten.diagonal_copy.default")
                .in(x)
                .integer(-2)
                .integer(1)
                .integer(2)
                .out(DType::kF16, {3, 2}),
            {moved(x, {3, 2}, [](const Coords& c) { return Coords{c[0], c[1] + 2, c[1]}; })},
            kExact);
  expect_op(Case("aten.diagonal_copy.default")
                .in(x)
                .integer(9)
                .integer(1)
                .integer(2)
                .out(DType::kF16, {3, 0}),
            {TestTensor{DType::kF16, {3, 0}, {}}}, kExact);
  expect_op(Case("aten.as_strided_copy.default")
                .in(x)
                .ints({2, 3})
                .ints({20, 2})
                .integer(5)
                .out(DType::kF16, {2, 3}),
            {moved(x, {2, 3}, [](const Coords& c) { return Coords{c[0], 1, c[1] * 2}; })}, kExact);
}

TEST(Movement, SplitsIntoPieces) {
  for (const DType t : every_type()) {
    const TestTensor x = some(t, {2, 7, 3});
    std::vector<TestTensor> want;
    for (const auto& [start, length] :
         std::vector<std::pair<int64_t, int64_t>>{{0, 3}, {3, 3}, {6, 1}}) {
      const int64_t first = start;
      want.push_back(moved(x, {2, length, 3},
                           [&](const Coords& c) { return Coords{c[0], first + c[1], c[2]}; }));
    }
    expect_op(
        Case("aten.split_with_sizes_copy.default").in(x).ints({3, 3, 1}).integer(1).outs(want),
        want, kExact);
    expect_op(Case("aten.split_copy.Tensor").in(x).integer(3).integer(-2).outs(want), want, kExact);
    std::vector<TestTensor> rows;
    for (int64_t r = 0; r < 2; ++r)
      rows.push_back(moved(x, {7, 3}, [&](const Coords& c) { return Coords{r, c[0], c[1]}; }));
    expect_op(Case("aten.unbind_copy.int").in(x).integer(0).outs(rows), rows, kExact);
  }
  // More pieces than a shape may have dims.
  const TestTensor x = some(DType::kU8, {12, 3});
  std::vector<TestTensor> want;
  for (int64_t k = 0; k < 12; ++k)
    want.push_back(moved(x, {1, 3}, [&](const Coords& c) { return Coords{k, c[1]}; }));
  expect_op(Case("aten.split_with_sizes_copy.default")
                .in(x)
                .ints(std::vector<int64_t>(12, 1))
                .integer(0)
                .outs(want),
            want, kExact);
}

TEST(Movement, ShufflesPixelsThereAndBack) {
  for (const DType t : {DType::kF32, DType::kF16, DType::kI8}) {
    const TestTensor x = some(t, {2, 12, 3, 5});
    const TestTensor y = moved(x, {2, 3, 6, 10}, [](const Coords& c) {
      return Coords{c[0], c[1] * 4 + (c[2] % 2) * 2 + c[3] % 2, c[2] / 2, c[3] / 2};
    });
    expect_op(Case("aten.pixel_shuffle.default").in(x).integer(2).out(t, y.dims), {y}, kExact);
    expect_op(Case("aten.pixel_unshuffle.default").in(y).integer(2).out(t, x.dims), {x}, kExact);
  }
}

TEST(Movement, KeepsTheBitsOfUnusualFloats) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const auto& [t, tiny] :
       std::vector<std::pair<DType, double>>{{DType::kF32, 0x1p-149}, {DType::kF16, 0x1p-24}}) {
    const TestTensor x{t, {2, 3}, {tiny, -tiny * 5, inf, -inf, std::nan(""), tiny * 77}};
    expect_op(Case("aten.permute_copy.default").in(x).ints({1, 0}).out(t, {3, 2}),
              {moved(x, {3, 2}, [](const Coords& c) { return Coords{c[1], c[0]}; })}, kExact);
  }
}

TEST(Movement, MovesEmptyTensors) {
  const TestTensor none{DType::kF32, {0, 3}, {}};
  expect_op(Case("aten.permute_copy.default").in(none).ints({1, 0}).out(DType::kF32, {3, 0}),
            {TestTensor{DType::kF32, {3, 0}, {}}}, kExact);
  expect_op(Case("aten.constant_pad_nd.default")
                .in(none)
                .ints({0, 0, 1, 0})
                .integer(2)
                .out(DType::kF32, {1, 3}),
            {TestTensor{DType::kF32, {1, 3}, {2, 2, 2}}}, kExact);
}

TEST(Movement, RefusesWhatCannotBe) {
  const TestTensor x = some(DType::kF32, {3, 4});
  const auto y = [](Case c, const Dims& dims) { return c.out(DType::kF32, dims); };
  expect_error(y(Case("aten.permute_copy.default").in(x).ints({0, 0}), {3, 3}),
               "dims: [0, 0] is not a permutation of 2 dims");
  expect_error(y(Case("aten.permute_copy.default").in(x).ints({0}), {3, 4}),
               "is not a permutation");
  expect_error(
      y(Case("aten.slice_copy.Tensor").in(x).integer(0).integer(0).integer(3).integer(0), {3, 4}),
      "step: expected at least 1, got 0");
  expect_error(y(Case("aten.slice_copy.Tensor").in(x).integer(2).none().none().integer(1), {3, 4}),
               "dim: expected -2 to 1, got 2");
  expect_error(y(Case("aten.select_copy.int").in(x).integer(1).integer(4), {3}),
               "index: 4 is outside [-4, 4)");
  expect_error(y(Case("aten.expand_copy.default").in(x).ints({3, 5}).none(), {3, 5}),
               "size: x [3, 4] does not expand to [3, 5]");
  expect_error(y(Case("aten.flip.default").in(x).ints({0, -2}), {3, 4}),
               "dims: [0, -2] names a dim twice");
  expect_error(
      y(Case("aten.unfold_copy.default").in(x).integer(0).integer(4).integer(1), {1, 4, 4}),
      "size 4 and step 1");
  expect_error(y(Case("aten.repeat.default").in(x).ints({2}), {6, 4}),
               "is shorter than the rank of x");
  expect_error(
      y(Case("aten.pixel_shuffle.default").in(some(DType::kF32, {3, 2, 2})).integer(2), {1, 4, 4}),
      "upscale_factor 2 does not divide the 3 channels of x");
  expect_error(
      y(Case("aten.as_strided_copy.default").in(x).ints({3, 4}).ints({4, 1}).integer(1), {3, 4}),
      "leave the 12 elements of x");
  expect_error(Case("aten.split_with_sizes_copy.default")
                   .in(x)
                   .ints({1, 1})
                   .integer(0)
                   .outs({some(DType::kF32, {1, 4}), some(DType::kF32, {1, 4})}),
               "split_sizes: 2 sizes of sum 2 for 2 results of 3 entries");
  expect_error(Case("aten.unbind_copy.int").in(x).integer(0).outs({some(DType::kF32, {4})}),
               "dim 0 has 3 entries, the file has 1 results");
}

}  // namespace
}  // namespace pteryx::ops::testing
