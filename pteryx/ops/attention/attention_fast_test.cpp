// Attention with threads and vectors: which calls it takes. That its results are right is tested
// with every other kernel of attention.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/attention_calls.h"
#include "pteryx/ops/testing/op_harness.h"
#include "pteryx/ops/testing/op_runner.h"

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

Case masked(DType t, int64_t rows, int64_t keys, const TestTensor& mask) {
  const TestTensor q = random(t, {2, 3, rows, 20}, 1);
  const TestTensor k = random(t, {2, 3, keys, 20}, 2);
  const TestTensor v = random(t, {2, 3, keys, 20}, 3);
  return Case("et_vk.sdpa.default").in(q).in(k).in(v).in(mask).none().out(t, q.dims);
}

// What each kernel of the CPU makes of a call.
void expect_same(const Case& c, Tolerance tol) {
  EXPECT_TRUE(is_fast(c));
  const auto want = run(c, Where::kCpu);
  const auto got = run(c, Where::kFast);
  ASSERT_TRUE(want.ok() && got.ok());
  EXPECT_EQ(compare(*got, *want, tol), "") << describe(c);
}

TEST(AttentionFast, TakesMasksOfEveryShape) {
  for (const DType t : {DType::kF32, DType::kF16}) {
    const Tolerance tol = t == DType::kF32 ? Tolerance{1e-5, 1e-5} : Tolerance{2e-3, 2e-3};
    for (const auto& [rows, keys] : {std::pair{1, 5}, {3, 130}, {37, 64}, {40, 71}}) {
      for (const Dims& d : std::vector<Dims>{{rows, keys},
                                             {2, 3, rows, keys},
                                             {2, 1, 1, keys},
                                             {3, 1, 1},
                                             {2, 1, rows, 1},
                                             {1}}) {
        expect_same(masked(t, rows, keys, random(t, d, 4, -5, 5)), tol);
        expect_same(masked(t, rows, keys, random(DType::kBool, d, 5, 0, 1)), tol);
      }
    }
  }
}

TEST(AttentionFast, TakesWhatMasksHaveBesideNumbers) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kMost = std::numeric_limits<float>::max();
  for (const int64_t rows : {2, 9}) {
    TestTensor mask = random(DType::kF32, {rows, 200}, 4);
    for (const double v : {-kInf, -kMost, std::nan(""), kInf}) {
      for (size_t i = 0; i < 200; ++i) mask.data[i] = i < 150 ? -kInf : mask.data[i];
      for (size_t i = 200; i < 400; ++i) mask.data[i] = v;
      expect_same(masked(DType::kF32, rows, 200, mask), {1e-5, 1e-5});
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
