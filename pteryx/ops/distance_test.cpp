// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/coords.h"
#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

TEST(Distance, BetweenAllPairsOfRows) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const DType t : {DType::kF32, DType::kF16, DType::kF64}) {
    const TestTensor a = random(t, {2, 1, 3, 5}, 1);
    const TestTensor b = random(t, {4, 7, 5}, 2);
    for (const double p : {0.0, 1.0, 2.0, 3.5, inf}) {
      const TestTensor y = tabulate(t, {2, 4, 3, 7}, [&](const Coords& c) {
        double sum = 0;
        for (int64_t k = 0; k < 5; ++k) {
          const double d = std::fabs(a.data[flat(a.dims, {c[0], 0, c[2], k})] -
                                     b.data[flat(b.dims, {c[1], c[3], k})]);
          if (p == 0)
            sum += d != 0 ? 1 : 0;
          else if (p == inf)
            sum = std::max(sum, d);
          else
            sum += std::pow(d, p);
        }
        return p == 0 || p == inf ? sum : std::pow(sum, 1 / p);
      });
      expect_op(Case("aten::_cdist_forward.out").in(a).in(b).number(p).none().out(t, y.dims), {y},
                t == DType::kF16 ? Tolerance{4e-3, 2e-3} : Tolerance{2e-5, 2e-5});
    }
  }
}

TEST(Distance, RefusesRowsOfOtherWidths) {
  expect_error(Case("aten._cdist_forward.default")
                   .in(random(DType::kF32, {3, 4}))
                   .in(random(DType::kF32, {3, 5}))
                   .number(2)
                   .none()
                   .out(DType::kF32, {3, 3}),
               "x1 [3, 4] and x2 [3, 5] do not go together");
}

}  // namespace
}  // namespace pteryx::ops::testing
