// What products take of memory. SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "pteryx/cpu/product.h"
#include "pteryx/cpu/testing/each_target.h"

namespace pteryx::cpu {
namespace {
using testing::for_each_target;

TEST(Product, OfFewerRowsTakesNoMoreMemory) {
  for_each_target([] {
    for (const WeightKind kind : {WeightKind::kLowFirst, WeightKind::kBytes, WeightKind::kF32}) {
      for (const Precision precision : {Precision::kF32, Precision::kF16}) {
        const Weight weight{.kind = kind, .n = 64, .k = 100'000, .group = 32};
        for (const size_t m : {size_t{1}, size_t{4}, size_t{5}, size_t{300}}) {
          const size_t prepared = most_prepared_bytes(weight, m, precision);
          const size_t scratch = scratch_bytes(weight, m, precision);
          for (size_t fewer = 0; fewer <= m; ++fewer) {
            EXPECT_LE(prepared_bytes(weight, fewer, precision), prepared);
            EXPECT_LE(scratch_bytes(weight, fewer, precision), scratch);
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace pteryx::cpu
