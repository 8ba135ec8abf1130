// How products with codes share out work on a large GPU.
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "pteryx/ops/testing/large_gpu.h"
#include "pteryx/ops/testing/op_runner.h"

namespace pteryx::ops::testing {
namespace {

PlannedDispatch only_dispatch(int64_t k, int64_t n, Precision precision) {
  constexpr int64_t kGroup = 32;
  Case c("et_vk.linear_q4gsw.default");
  c.in({DType::kF32, {1, 1, k}, {}})
      .constant({DType::kU8, {n, k / 2}, {}})
      .constant({DType::kF32, {k / kGroup, n}, {}})
      .integer(kGroup)
      .none();
  c.out(DType::kF32, {1, 1, n});
  auto planned = plan_of(c, {.caps = large_gpu(), .precision = precision});
  EXPECT_TRUE(planned.ok()) << planned.status().message();
  if (!planned.ok()) return {};
  EXPECT_EQ(planned->size(), 1U);
  return planned->empty() ? PlannedDispatch() : std::move(planned->front());
}

// Every weight is asked for before x is looked at, once: no row is gone through in passes.
TEST(QLinearSelect, OneRowIsHeldWhole) {
  for (const int64_t k : {2048, 4096, 8192, 14336}) {
    for (const Precision precision : {Precision::kF32, Precision::kF16}) {
      const PlannedDispatch d = only_dispatch(k, 4096, precision);
      SCOPED_TRACE(fmt::format("k = {}, {}", k, d.label));
      ASSERT_TRUE(d.label.starts_with("qlinear_dot4")) << d.label;
      EXPECT_EQ(d.code.find("first_unit += wide"), std::string::npos);
      EXPECT_LE(d.grid.x, 1024U);
    }
  }
  const PlannedDispatch longest = only_dispatch(65536, 4096, Precision::kF16);
  EXPECT_NE(longest.code.find("first_unit += wide"), std::string::npos);  // beyond any memory
}

}  // namespace
}  // namespace pteryx::ops::testing
