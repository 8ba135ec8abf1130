// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

// The result and `to` are one value in a program; here `to` shows what was written.
TEST(CopyIndex, WritesOneRow) {
  const TestTensor to = random(DType::kF32, {4, 2, 3}, 1);
  const TestTensor from = random(DType::kF32, {2, 3}, 2);
  for (const int64_t row : {0, 2, 3}) {
    TestTensor want = to;
    for (size_t i = 0; i < 6; ++i) want.data[static_cast<size_t>(row) * 6 + i] = from.data[i];
    const auto got = run(Case("executorch_prim::et_copy_index.tensor")
                             .in(to)
                             .in(from)
                             .live(row)
                             .out(DType::kF32, {row + 1, 2, 3}),
                         Where::kCpu);
    ASSERT_TRUE(got.ok()) << got.status().message();
    EXPECT_EQ(compare({(*got)[1]}, {want}, kExact), "");
  }
}

TEST(CopyIndex, Refuses) {
  const TestTensor to = random(DType::kF32, {4, 2});
  expect_error(Case("executorch_prim::et_copy_index.tensor")
                   .in(to)
                   .in(random(DType::kF32, {2}))
                   .live(-1)
                   .out(DType::kF32, {1, 2}),
               "index: expected 0 or more, got -1");
}

}  // namespace
}  // namespace pteryx::ops::testing
