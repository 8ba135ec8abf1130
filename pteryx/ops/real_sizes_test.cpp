// GPU kernels against CPU kernels at the sizes of real models: prompts of 64 and 300 tokens,
// contexts of 1,024 and 4,096 rows with heads of 64 and 128, a vocabulary of 128,256.
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "pteryx/ops/testing/attention_calls.h"

namespace pteryx::ops::testing {
namespace {

constexpr DType kF32 = DType::kF32;
constexpr int64_t kVocabulary = 128256;

// The default route, or all that fit.
enum class Routes : uint8_t { kDefault, kAll };

void expect_same(const Case& c, Tolerance tolerance, Routes which = Routes::kAll) {
  SCOPED_TRACE(c.op() + " " + describe(c));
  const auto want = run(c, Where::kCpu);
  ASSERT_TRUE(want.ok()) << want.status().message();
  EXPECT_EQ(compare_fast(c, *want, tolerance), "") << "on the CPU, fast";
  auto routes = gpu_routes(c);
  ASSERT_TRUE(routes.ok()) << routes.status().message();
  ASSERT_FALSE(routes->empty()) << "not for the GPU";
  if (which == Routes::kDefault) *routes = {""};
  for (const std::string& route : *routes) {
    const auto got = run(c, Where::kGpu, route);
    ASSERT_TRUE(got.ok()) << route << ": " << got.status().message();
    EXPECT_EQ(compare(*got, *want, tolerance), "") << "route '" << route << "'";
  }
}

// Each head size is a pipeline of its own per route, which take seconds to compile on a software
// GPU: there, the route that is taken.
TEST(RealSizes, AttentionOverLongContexts) {
  const Routes routes = emulated_caps().software ? Routes::kDefault : Routes::kAll;
  for (const int64_t d : {64, 128}) {
    for (const int64_t context : {1024, 4096}) {
      const CachedCall one({4, 1, d, context, 1, context - 1}, kF32, kF32);
      expect_same(one.causal_call(), kAttentionFloat, routes);
    }
    const CachedCall prompt({2, 1, d, 1024, 64, 960}, kF32, kF32);
    expect_same(prompt.causal_call(), kAttentionFloat, routes);
  }
  const CachedCall far({2, 1, 64, 4096, 64, 4032}, kF32, DType::kF16);
  expect_same(far.causal_call(), kAttentionHalf, Routes::kDefault);
}

TEST(RealSizes, AttentionOfLongPrompts) {
  for (const int64_t d : {64, 128}) {
    const CachedCall first({2, 1, d, 300, 300, 0}, kF32, kF32);
    expect_same(first.causal_call(), kAttentionFloat, Routes::kDefault);
  }
  const CachedCall later({2, 1, 64, 1024, 300, 724}, kF32, kF32);
  expect_same(later.causal_call(), kAttentionFloat, Routes::kDefault);
}

TEST(RealSizes, RopeOfTwoThousandPositions) {
  constexpr int64_t kLength = 2047;
  const TestTensor q = random(kF32, {1, kLength, 32, 64}, 1);
  const TestTensor k = random(kF32, {1, kLength, 8, 64}, 2);
  const TestTensor cos = random(kF32, {kLength, 32}, 3, -1, 1);
  const TestTensor sin = random(kF32, {kLength, 32}, 4, -1, 1);
  expect_same(Case("et_vk.apply_rotary_emb.default").in(q).in(k).in(cos).in(sin).outs({q, k}),
              {1e-6, 1e-6});
  const TestTensor first = random(kF32, {1, 4, kLength, 128}, 1);
  const TestTensor wide = random(kF32, {1, 2048, 96}, 5, -1, 1);
  expect_same(Case("et_vk.apply_rotary_emb_hf.default")
                  .in(first)
                  .in(first)
                  .in(wide)
                  .in(wide)
                  .live(1)
                  .outs({first, first}),
              {1e-6, 1e-6});
}

// y = x W of a prompt, W of codes and of numbers.
TEST(RealSizes, LinearLayersOfPrompts) {
  for (const int64_t rows : {64, 300}) {
    const TestTensor x = random(kF32, {1, rows, 1024}, 1, -1, 1);
    expect_same(Case("et_vk.linear_q4gsw.default")
                    .in(x)
                    .constant(random(DType::kU8, {256, 512}, 2, 0, 255))
                    .constant(random(kF32, {32, 256}, 3, 0.01, 0.1))
                    .integer(32)
                    .none()
                    .out(kF32, {1, rows, 256}),
                {1e-3, 1e-3}, Routes::kDefault);
    expect_same(Case("aten.linear.default")
                    .in(x)
                    .constant(random(kF32, {256, 1024}, 4, -0.1, 0.1))
                    .none()
                    .out(kF32, {1, rows, 256}),
                {1e-4, 1e-4}, Routes::kDefault);
    expect_same(Case("et_vk.rms_norm.default")
                    .in(random(kF32, {1, rows, 2048}, 5))
                    .in(random(kF32, {2048}, 6))
                    .number(1e-5)
                    .out(kF32, {1, rows, 2048}),
                {1e-5, 1e-5});
  }
}

TEST(RealSizes, WholeVocabulary) {
  const TestTensor ids{DType::kI64, {1, 5}, {0, 1, 65536, kVocabulary - 2, kVocabulary - 1}};
  expect_same(Case("et_vk.embedding_q4gsw.default")
                  .constant(random(DType::kU8, {kVocabulary, 32}, 1, 0, 255))
                  .constant(random(kF32, {kVocabulary, 2}, 2, 0.01, 0.1))
                  .integer(32)
                  .in(ids)
                  .flag(false)
                  .out(kF32, {1, 5, 64}),
              {0, 1e-6});
  expect_same(Case("et_vk.linear_q4gsw.default")
                  .in(random(kF32, {1, 64}, 3, -1, 1))
                  .constant(random(DType::kU8, {kVocabulary, 32}, 4, 0, 255))
                  .constant(random(kF32, {2, kVocabulary}, 5, 0.01, 0.1))
                  .integer(32)
                  .none()
                  .out(kF32, {1, kVocabulary}),
              {1e-4, 1e-3});
  expect_same(Case("aten.linear.default")
                  .in(random(kF32, {1, 64}, 6, -1, 1))
                  .constant(random(kF32, {kVocabulary, 64}, 7, -0.1, 0.1))
                  .none()
                  .out(kF32, {1, kVocabulary}),
              {1e-4, 1e-4});
  // The largest stands near the end.
  TestTensor logits = random(kF32, {2, kVocabulary}, 8);
  logits.data[static_cast<size_t>(kVocabulary) - 3] = 5;
  logits.data[static_cast<size_t>(2 * kVocabulary) - 1] = 5;
  expect_same(
      Case("aten._softmax.default").in(logits).integer(-1).flag(false).out(kF32, logits.dims),
      {1e-7, 1e-5});
  expect_same(Case("aten.argmax.default").in(logits).integer(-1).flag(false).out(DType::kI64, {2}),
              kExact);
}

}  // namespace
}  // namespace pteryx::ops::testing
