// Attention against a plain reference in double. SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/attention_calls.h"

namespace pteryx::ops::testing {
namespace {

constexpr Tolerance kFloat = kAttentionFloat;
constexpr Tolerance kHalf = kAttentionHalf;

size_t at(int64_t i) { return static_cast<size_t>(i); }

// Every head size is a pipeline of its own per route, and those take long to compile on a software
// GPU: few sizes, one for each way through the kernels.
TEST(Attention, Heads) {
  for (const AttentionShape& s : std::vector<AttentionShape>{{6, 2, 8, 32, 5, 17},
                                                             {4, 4, 8, 32, 3, 0},
                                                             {6, 2, 128, 40, 6, 31},
                                                             {32, 8, 128, 40, 1, 1},
                                                             {3, 1, 6, 48, 17, 31},
                                                             {3, 1, 6, 16, 1, 15},
                                                             {1, 1, 300, 8, 5, 3}}) {
    expect_causal(s, DType::kF32, DType::kF32);
  }
}

TEST(Attention, Halves) {
  expect_causal({6, 2, 8, 32, 5, 17}, DType::kF16, DType::kF16);
  expect_causal({6, 2, 8, 32, 1, 17}, DType::kF32, DType::kF16);
  expect_causal({3, 1, 7, 16, 2, 3}, DType::kF16, DType::kF16);
}

TEST(Attention, Positions) {
  for (const int64_t pos : {0, 1, 17, 300 - 3})
    expect_causal({4, 2, 8, 300, 3, pos}, DType::kF32, DType::kF32);
  for (const int64_t rows : {1, 2, 4, 5, 16, 17, 32, 33})
    expect_causal({3, 1, 8, 70, rows, 70 - rows}, DType::kF32, DType::kF32);
}

TEST(Attention, LongContexts) {
  // Many splits, of which causal rows leave some without keys of their own.
  expect_causal({2, 1, 8, 1300, 1, 1299}, DType::kF32, DType::kF32);
  expect_causal({2, 1, 8, 1300, 4, 1024}, DType::kF32, DType::kF32);
  expect_causal({2, 2, 8, 300, 70, 201}, DType::kF32, DType::kF32);
}

TEST(Attention, Batches) {
  expect_causal({4, 2, 8, 20, 3, 2}, DType::kF32, DType::kF32, 2);
  expect_causal({4, 2, 8, 20, 9, 2}, DType::kF16, DType::kF16, 3);
  expect_causal({1, 1, 3, 5, 3, 2}, DType::kF16, DType::kF16, 2);  // shared words: on the CPU
}

TEST(Attention, FlagsAndScale) {
  const CachedCall c({4, 2, 8, 40, 5, 7}, DType::kF32, DType::kF32);
  expect_op(
      c.call().integer(7).live(5).none().number(0).flag(false).none().out(DType::kF32, c.q.dims),
      c.want(Rule::kAll, c.scale()), kFloat);
  expect_op(
      c.call().number(7).integer(1).none().none().none().number(0.5).out(DType::kF32, c.q.dims),
      c.want(Rule::kCausal, 0.5), kFloat);
}

TEST(Attention, LargeScores) {
  const CachedCall c({2, 1, 8, 40, 6, 17}, DType::kF32, DType::kF32, 1, 200);
  expect_op(c.call().integer(17).integer(1).none().integer(0).flag(true).number(1).out(DType::kF32,
                                                                                       c.q.dims),
            c.want(Rule::kCausal, 1), {2e-3, 2e-3});
}

TEST(Attention, MaskOverTheCache) {
  const CachedCall c({4, 2, 8, 40, 5, 7}, DType::kF32, DType::kF32);
  for (const DType t : {DType::kF32, DType::kBool}) {
    TestTensor mask = random(t, {5, 20}, 9);  // wider than the live rows
    if (t == DType::kF32) mask.data[3] = -INFINITY;
    expect_op(c.call().integer(7).integer(1).in(mask).integer(0).flag(true).none().out(DType::kF32,
                                                                                       c.q.dims),
              {attention_reference(c.q, c.new_k(), c.new_v(), 20, 7, Rule::kAll, c.scale(), &mask),
               c.new_k(), c.new_v()},
              kFloat);
  }
}

TEST(Attention, CustomSdpaReadsTheCache) {
  for (const int64_t rows : {1, 9}) {
    const CachedCall c({6, 2, 8, 40, rows, 17}, DType::kF32, DType::kF32);
    for (const std::string op : {"custom_sdpa.default", "llama.custom_sdpa.default"}) {
      expect_op(
          Case(op)
              .in(c.q)
              .in(c.k_cache)
              .in(c.v_cache)
              .live(17)
              .none()
              .integer(0)
              .flag(true)
              .none()
              .out(DType::kF32, c.q.dims),
          {attention_reference(c.q, c.k_cache, c.v_cache, 17 + rows, 17, Rule::kCausal, c.scale())},
          kFloat);
    }
  }
}

TEST(UpdateCache, WritesRowsAndNothingElse) {
  for (const DType t : {DType::kF32, DType::kF16}) {
    for (const int64_t d : {4, 3}) {
      const TestTensor x = random(t, {1, 3, 1, d}, 1);
      const TestTensor cache = random(t, {1, 9, 1, d}, 2);
      for (const int64_t pos : {0, 1, 6}) {
        for (const std::string op : {"update_cache.default", "llama.update_cache.default"}) {
          expect_op(Case(op).in(x).in(cache).live(pos).out(DType::kF32, {3}),
                    {TestTensor{}, with_rows(cache, x, pos)}, kExact);
        }
      }
    }
  }
}

// [.., H, S, D] as [B, S, H, D].
TestTensor turned(const TestTensor& t, int64_t batch, int64_t heads) {
  const int64_t size = t.dims.back();
  const int64_t rows = t.dims[t.dims.rank() - 2];
  return make(t.dtype, {batch, rows, heads, size}, [&](int64_t i) {
    const int64_t d = i % size;
    const int64_t h = i / size % heads;
    const int64_t s = i / size / heads % rows;
    return t.data[at(((i / size / heads / rows * heads + h) * rows + s) * size + d)];
  });
}

TEST(Sdpa, WholeTensors) {
  struct Whole {
    Dims q;
    int64_t keys, batch, heads;
    DType t;
  };
  for (const auto& [dims, keys, batch, heads, t] :
       std::vector<Whole>{{{1, 3, 37, 8}, 37, 1, 3, DType::kF32},
                          {{2, 3, 5, 8}, 9, 2, 3, DType::kF32},
                          {{2, 3, 1, 8}, 9, 2, 3, DType::kF16},
                          {{3, 5, 8}, 4, 1, 3, DType::kF32},
                          {{2, 1, 2, 6, 8}, 3, 2, 2, DType::kF32}}) {
    Dims kv = dims;
    kv[dims.rank() - 2] = keys;
    const TestTensor q = random(t, dims, 1);
    const TestTensor k = random(t, kv, 2);
    const TestTensor v = random(t, kv, 3);
    const int64_t rows = dims[dims.rank() - 2];
    TestTensor mask = random(t, {rows, keys}, 4);
    mask.data[0] = -INFINITY;
    for (double& m : mask.data) {
      if (&m - mask.data.data() >= (rows - 1) * keys) m = -INFINITY;  // nothing left: uniform
    }
    for (const TestTensor* m :
         {static_cast<const TestTensor*>(nullptr), static_cast<const TestTensor*>(&mask)}) {
      const TestTensor y =
          attention_reference(turned(q, batch, heads), turned(k, batch, heads),
                              turned(v, batch, heads), keys, 0, Rule::kAll, 0.25, m);
      TestTensor want = q;
      for (int64_t i = 0; i < numel(dims); ++i) {
        const int64_t size = dims.back();
        const int64_t s = i / size % rows;
        const int64_t h = i / size / rows % heads;
        want.data[at(i)] =
            y.data[at(((i / size / rows / heads * rows + s) * heads + h) * size + i % size)];
      }
      Case c("et_vk.sdpa.default");
      c.in(q).in(k).in(v);
      m == nullptr ? c.none() : c.in(*m);
      expect_op(c.number(0.25).out(t, dims), {want}, t == DType::kF16 ? kHalf : kFloat);
    }
  }
}

TEST(Sdpa, Empty) {
  const TestTensor q = random(DType::kF32, {1, 2, 0, 4});
  const TestTensor k = random(DType::kF32, {1, 2, 3, 4});
  expect_op(Case("et_vk.sdpa.default").in(q).in(k).in(k).none().none().out(DType::kF32, q.dims),
            {q}, kExact);
  expect_error(Case("et_vk.sdpa.default").in(k).in(q).in(q).none().none().out(DType::kF32, k.dims),
               "k has no rows");
}

Case cached_case(const Dims& q, const Dims& k, const Dims& v, const Dims& caches, int64_t pos,
                 double dropout = 0) {
  const auto t = [](const Dims& d) { return random(DType::kF32, d); };
  return Case("sdpa_with_kv_cache.default")
      .in(t(q))
      .in(t(k))
      .in(t(v))
      .in(t(caches))
      .in(t(caches))
      .live(pos)
      .integer(1)
      .none()
      .number(dropout)
      .flag(true)
      .none()
      .out(DType::kF32, q);
}

TEST(Attention, Refuses) {
  const Dims q = {1, 3, 4, 8};
  const Dims k = {1, 3, 2, 8};
  const Dims cache = {1, 16, 2, 8};
  expect_error(cached_case(q, k, k, cache, 14),
               "start_pos 14 + 3 rows exceed the 16 rows of k_cache");
  expect_error(cached_case(q, k, k, cache, -1), "start_pos: expected 0 or more, got -1");
  expect_error(cached_case({1, 0, 4, 8}, {1, 0, 2, 8}, {1, 0, 2, 8}, cache, 0), "q has no rows");
  expect_error(cached_case({1, 3, 3, 8}, k, k, cache, 0),
               "k_cache (value 3) heads: expected a divisor of 3, got 2");
  expect_error(cached_case(q, {1, 2, 2, 8}, k, cache, 0),
               "k (value 1) shape: expected [1, 3, 2, 8], got [1, 2, 2, 8]");
  expect_error(cached_case(q, k, {1, 3, 2, 4}, cache, 0),
               "v (value 2) shape: expected [1, 3, 2, 8], got [1, 3, 2, 4]");
  expect_error(cached_case(q, k, k, {1, 16, 2, 4}, 0),
               "k_cache (value 3) shape: expected [1, 16, 2, 8], got [1, 16, 2, 4]");
  expect_error(cached_case(q, k, k, cache, 0, 0.5), "dropout_p: expected 0, got 0.5");
  const auto t = [](const Dims& d) { return random(DType::kF32, d); };
  expect_error(Case("update_cache.default").in(t(k)).in(t(cache)).live(14).out(DType::kF32, {1}),
               "start_pos 14 + 3 rows exceed the 16 rows of cache");
  expect_error(
      Case("et_vk.sdpa.default")
          .in(t({2, 3, 4}))
          .in(t({2, 5, 4}))
          .in(t({2, 5, 4}))
          .in(t({4, 5}))
          .none()
          .out(DType::kF32, {2, 3, 4}),
      "attn_mask (value 3) shape: expected one that broadcasts to [1, 2, 3, 5], got [4, 5]");
}

}  // namespace
}  // namespace pteryx::ops::testing
