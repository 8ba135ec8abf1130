// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/testing/op_harness.h"

#include <cmath>

#include <gtest/gtest.h>

namespace pteryx::ops::testing {
namespace {

TEST(OpHarness, NoticesAWrongElement) {
  const std::vector<TestTensor> want = {{DType::kF32, {2}, {1, 2}}};
  EXPECT_EQ(compare({{DType::kF32, {2}, {1, 2}}}, want, kExact), "");
  EXPECT_NE(compare({{DType::kF32, {2}, {1, 2.001}}}, want, {1e-4, 1e-4}), "");
  EXPECT_NE(compare({{DType::kF32, {2}, {1, std::nan("")}}}, want, {1e-4, 1e-4}), "");
}

}  // namespace
}  // namespace pteryx::ops::testing
