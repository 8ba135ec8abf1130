// Attention with threads and vectors: which calls it takes. That its results are right is tested
// with every other kernel of attention.
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "pteryx/ops/testing/attention_calls.h"
#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

TEST(AttentionFast, TakesCausalCallsOfBothTypes) {
  for (const DType t : {DType::kF32, DType::kF16}) {
    for (const DType cache : {DType::kF32, DType::kF16}) {
      if (t == DType::kF16 && cache == DType::kF32) continue;
      for (const int64_t rows : {1, 7, 40})
        EXPECT_TRUE(is_fast(CachedCall({4, 2, 64, 64, rows, 9}, t, cache).causal_call())) << rows;
    }
  }
}

TEST(AttentionFast, LeavesWideHeadsToTheReference) {
  const DType t = DType::kF32;
  EXPECT_TRUE(is_fast(CachedCall({2, 1, 256, 16, 3, 2}, t, t).causal_call()));
  EXPECT_FALSE(is_fast(CachedCall({2, 1, 260, 16, 3, 2}, t, t).causal_call()));
}

}  // namespace
}  // namespace pteryx::ops::testing
