// Movement that fills in: pads, crops and triangles. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/coords.h"
#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

TEST(Movement, PadsAndCrops) {
  struct {
    std::vector<int64_t> pad;
    Dims dims;
    int64_t row, column;  // of x's corner
  } const cases[] = {{{0, 1, 2, 3}, {8, 6}, 2, 0},
                     {{1, 2}, {3, 8}, 0, 1},
                     {{-1, 2, 1, -2}, {2, 6}, 1, -1},
                     {{}, {3, 5}, 0, 0},
                     {{0, -5}, {3, 0}, 0, 0}};
  for (const DType t : every_type()) {
    const TestTensor x = some(t, {3, 5});
    for (const auto& c : cases) {
      const TestTensor y = tabulate(t, c.dims, [&](const Coords& i) {
        const int64_t row = i[0] - c.row;
        const int64_t column = i[1] - c.column;
        const bool inside = row >= 0 && row < 3 && column >= 0 && column < 5;
        return inside ? x.data[flat(x.dims, {row, column})] : 1.0;
      });
      expect_op(Case("aten.constant_pad_nd.default").in(x).ints(c.pad).number(1.0).out(t, c.dims),
                {y}, kExact);
    }
  }
}

TEST(Movement, PadsWithItsOwnEdges) {
  for (const DType t : {DType::kF32, DType::kF16, DType::kI8}) {
    const TestTensor x = some(t, {2, 4, 5});
    const auto mirror = [](int64_t c, int64_t extent) {
      c = c < 0 ? -c : c;
      return c >= extent ? 2 * (extent - 1) - c : c;
    };
    const auto clip = [](int64_t c, int64_t extent) {
      return std::min(std::max<int64_t>(c, 0), extent - 1);
    };
    expect_op(Case("aten.reflection_pad2d.default").in(x).ints({4, 1, 0, 3}).out(t, {2, 7, 10}),
              {moved(x, {2, 7, 10},
                     [&](const Coords& c) {
                       return Coords{c[0], mirror(c[1], 4), mirror(c[2] - 4, 5)};
                     })},
              kExact);
    expect_op(Case("aten.replication_pad2d.default").in(x).ints({6, 1, 2, 3}).out(t, {2, 9, 12}),
              {moved(x, {2, 9, 12},
                     [&](const Coords& c) {
                       return Coords{c[0], clip(c[1] - 2, 4), clip(c[2] - 6, 5)};
                     })},
              kExact);
    expect_op(Case("aten.reflection_pad1d.default").in(x).ints({-1, 2}).out(t, {2, 4, 6}),
              {moved(x, {2, 4, 6},
                     [&](const Coords& c) { return Coords{c[0], c[1], mirror(c[2] + 1, 5)}; })},
              kExact);
  }
  expect_error(Case("aten.reflection_pad1d.default")
                   .in(some(DType::kF32, {2, 4}))
                   .ints({4, 0})
                   .out(DType::kF32, {2, 8}),
               "pad: 4 before and 0 after do not fit the 4 entries of dim 1");
}

TEST(Movement, KeepsTriangles) {
  for (const DType t : {DType::kF32, DType::kF16, DType::kBool, DType::kI64}) {
    const TestTensor x = some(t, {2, 3, 5});
    for (const int64_t diagonal : {-9, -1, 0, 2, 9}) {
      const auto keep = [&](bool lower) {
        return tabulate(t, x.dims, [&](const Coords& c) {
          const int64_t off = c[2] - c[1];
          return (lower ? off <= diagonal : off >= diagonal) ? x.data[flat(x.dims, c)] : 0.0;
        });
      };
      expect_op(Case("aten.tril.default").in(x).integer(diagonal).out(t, x.dims), {keep(true)},
                kExact);
      expect_op(Case("aten.triu.default").in(x).integer(diagonal).out(t, x.dims), {keep(false)},
                kExact);
    }
  }
}

}  // namespace
}  // namespace pteryx::ops::testing
