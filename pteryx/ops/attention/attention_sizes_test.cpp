// Attention over head sizes, groups, cache types and sequences of calls, and what its plans cost.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/attention_calls.h"

namespace pteryx::ops::testing {
namespace {

constexpr DType kF32 = DType::kF32;
constexpr DType kF16 = DType::kF16;

// Every size is a pipeline of its own per route, which take seconds to compile on a software GPU:
// there, one for each way through the kernels.
std::vector<int64_t> head_sizes() {
  if (emulated_caps().software) return {20, 256};
  std::vector<int64_t> sizes(64);
  for (size_t i = 0; i < sizes.size(); ++i) sizes[i] = 4 * static_cast<int64_t>(i + 1);
  return sizes;
}

TEST(AttentionSizes, HeadSizes) {
  for (const int64_t d : head_sizes()) {
    expect_causal({4, 2, d, 80, 1, 70}, kF32, kF32);
    expect_causal({4, 2, d, 80, 9, 33}, kF32, kF32);
  }
}

TEST(AttentionSizes, HalfCaches) {
  for (const int64_t d : {8, 64}) {
    expect_causal({4, 2, d, 80, 1, 70}, kF32, kF16);
    expect_causal({4, 2, d, 80, 9, 33}, kF32, kF16);
  }
  expect_causal({4, 2, 8, 600, 3, 590}, kF32, kF16, 2);
  expect_causal({3, 1, 6, 40, 2, 17}, kF32, kF16);
}

TEST(AttentionSizes, Groups) {
  for (int64_t group = 1; group <= 8; ++group) {
    expect_causal({2 * group, 2, 8, 40, 1, 21}, kF32, kF32);
    expect_causal({2 * group, 2, 8, 40, 6, 21}, kF32, kF32);
  }
  expect_causal({9, 3, 8, 300, 2, 290}, kF32, kF32, 3);
}

// Rows at the seams between splits, and between rows of the cache and new ones.
TEST(AttentionSizes, Seams) {
  for (const int64_t pos : {255, 256, 510, 511, 512}) {
    expect_causal({2, 1, 8, 600, 1, pos}, kF32, kF32);
    expect_causal({2, 1, 8, 600, 4, pos}, kF32, kF32);
  }
}

// Blocks of 64, 32 and 16 rows, by what fills the GPU.
TEST(AttentionSizes, TiledBlocks) {
  const CachedCall c({2, 1, 16, 110, 70, 33}, kF32, kF32);
  for (const uint32_t processors : {2U, 12U, 132U}) {
    SCOPED_TRACE(processors);
    expect_route(
        c.call().integer(33).integer(1).none().integer(0).flag(true).none().out(kF32, c.q.dims),
        "tiled", c.want(Rule::kCausal, c.scale()), kAttentionFloat, [&](gpu::Caps& caps) {
          caps.sizes.processors = processors;
          caps.software = false;
        });
  }
}

// What attention_decode has for units of eight and four, teams of eight and four, lanes without a
// column, and caches of other types than the new rows.
TEST(AttentionSizes, DecodeCuts) {
  constexpr const char* kRoute = "decode_subgroup";
  expect_causal_by(kRoute, {4, 2, 36, 300, 2, 290}, kF32, kF16);
  expect_causal_by(kRoute, {2, 1, 96, 300, 1, 270}, kF16, kF32);
  if (emulated_caps().software) return;  // they take long to compile
  for (const DType cache : {kF16, kF32}) {
    for (const int64_t d : {12, 16, 32, 40, 64, 72, 80, 100, 128, 160, 192, 256})
      expect_causal_by(kRoute, {4, 2, d, 300, 2, 290}, kF32, cache);
  }
}

// Every number of rows, at contexts around those where another split begins: a workgroup takes 256
// keys of contexts up to 2048, 512 beyond, and few workgroups more than one pass.
TEST(AttentionSizes, DecodeSplits) {
  constexpr const char* kRoute = "decode_subgroup";
  for (int64_t rows = 1; rows <= 8; ++rows) {
    for (const int64_t pos : {0, 254, 255, 256, 257})
      expect_causal_by(kRoute, {2, 1, 8, 300, rows, pos}, kF32, kF32);
  }
  for (const int64_t pos : {511, 512, 513, 1023, 1025, 2047, 2048, 2049, 2559, 2561, 4096})
    expect_causal_by(kRoute, {1, 1, 8, 4100, 1, pos}, kF32, kF32);
  for (const int64_t pos : {511, 512, 513, 1000})
    expect_causal_by(kRoute, {64, 8, 8, 1010, 8, pos}, kF32, kF32);
}

// Rows behind the last key may hold anything.
TEST(AttentionSizes, OldRowsDoNotMatter) {
  for (const int64_t pos : {5, 300}) {
    for (const int64_t rows : {2, 9}) {
      CachedCall c({2, 1, 8, 700, rows, pos}, kF32, kF32);
      for (TestTensor* const cache : {&c.k_cache, &c.v_cache}) {
        std::fill(cache->data.begin() + (pos + rows) * 8, cache->data.end(), NAN);
      }
      expect_op(c.causal_call(), c.want(Rule::kCausal, c.scale()), kAttentionFloat);
    }
  }
}

// Splits with a mask, and without rows to be written.
TEST(AttentionSizes, DecodeMasks) {
  const CachedCall c({4, 2, 8, 700, 2, 590}, kF32, kF16);
  for (const DType t : {kF32, DType::kBool}) {
    const TestTensor mask = random(t, {2, 650}, 9);
    expect_op(
        c.call().integer(590).integer(1).in(mask).integer(0).flag(true).none().out(kF32, c.q.dims),
        {attention_reference(c.q, c.new_k(), c.new_v(), 650, 590, Rule::kAll, c.scale(), &mask)},
        kAttentionHalf);
  }
}

TEST(AttentionSizes, Matrices) {
  for (const AttentionShape& s :
       std::vector<AttentionShape>{{2, 1, 20, 200, 70, 31}, {2, 1, 20, 200, 130, 0}}) {
    const CachedCall c(s, kF16, kF16, 2);
    expect_matrices(c.causal_call(), c.want(Rule::kCausal, c.scale()), kAttentionHalf);
  }
  // Scores that grow along the keys, so that sums are scaled anew.
  CachedCall c({2, 1, 16, 300, 20, 270}, kF32, kF32);
  for (size_t i = 0; i < c.k_cache.data.size(); ++i)
    c.k_cache.data[i] *= 1 + static_cast<double>(i / 16) / 40;
  c.k_cache = round_to(round_to(c.k_cache, kF16), kF32);
  c.q = round_to(round_to(c.q, kF16), kF32);
  expect_matrices(c.causal_call(), c.want(Rule::kCausal, c.scale()), {5e-3, 1e-2});
  const TestTensor mask = random(DType::kBool, {20, 290}, 9);
  expect_matrices(
      c.call().integer(270).integer(1).in(mask).integer(0).flag(true).none().out(kF32, c.q.dims),
      {attention_reference(c.q, c.new_k(), c.new_v(), 290, 270, Rule::kAll, c.scale(), &mask)},
      {5e-3, 1e-2});
}

TEST(AttentionSizes, MatrixSizes) {
  const auto expect = [](const AttentionShape& s, DType t, DType cache) {
    SCOPED_TRACE(fmt::format("size {}, {} rows", s.d, s.rows));
    const CachedCall c(s, t, cache);
    expect_matrices(c.causal_call(), c.want(Rule::kCausal, c.scale()), kAttentionHalf);
  };
  expect({4, 2, 64, 90, 65, 20}, kF32, kF16);
  if (emulated_caps().software) return;  // they take long to compile
  for (const int64_t d : {4, 8, 48, 80, 96, 100, 112, 128, 160, 192, 256}) {
    for (const DType cache : {kF16, kF32}) expect({4, 2, d, 300, 200, 50}, kF16, cache);
  }
  for (const int64_t rows : {9, 63, 64, 65, 128, 600})
    expect({4, 2, 64, 700, rows, 50}, kF32, kF16);
}

TestTensor rows_of(const TestTensor& t, int64_t first, int64_t count) {
  const int64_t row = t.dims[2] * t.dims[3];
  return make(t.dtype, {1, count, t.dims[2], t.dims[3]},
              [&](int64_t i) { return t.data[static_cast<size_t>(first * row + i)]; });
}

// Calls on the same caches, each with the next rows: together they are one call with all of them.
TEST(AttentionSizes, SequencesEqualOneCall) {
  for (const std::vector<int64_t>& counts : std::vector<std::vector<int64_t>>{
           {3, 1, 1, 5, 1, 1, 2}, {111, 1, 1, 1, 57, 1, 1}, {300, 1}, {31, 17}, {128, 128}}) {
    const int64_t all = std::accumulate(counts.begin(), counts.end(), int64_t{0});
    const CachedCall whole({6, 2, 8, all + 2, all, 0}, kF32, kF32);
    const TestTensor want = whole.want(Rule::kCausal, whole.scale())[0];
    CachedCall part = whole;
    part.pos = 0;
    for (int turn = 0; turn < 2; ++turn) {  // the second over the rows that the first has left
      part.pos = 0;
      for (const int64_t count : counts) {
        SCOPED_TRACE(fmt::format("{} rows at {} of {}", count, part.pos, all));
        part.q = rows_of(whole.q, part.pos, count);
        part.k = rows_of(whole.k, part.pos, count);
        part.v = rows_of(whole.v, part.pos, count);
        const auto got = run(part.causal_call());
        ASSERT_TRUE(got.ok()) << got.status().message();
        EXPECT_EQ(compare(*got, {rows_of(want, part.pos, count)}, kAttentionFloat), "");
        part.k_cache = (*got)[1];
        part.v_cache = (*got)[2];
        part.pos += count;
      }
    }
  }
}

TEST(AttentionSizes, ScratchIsSmall) {
  constexpr int64_t kContext = 8192;
  for (const int64_t rows : {1, 4, 512}) {
    const TestTensor q{kF32, {1, rows, 32, 64}, {}};
    const TestTensor k{kF32, {1, rows, 8, 64}, {}};
    const TestTensor cache{kF32, {1, kContext, 8, 64}, {}};
    const Case c = Case("sdpa_with_kv_cache.default")
                       .in(q)
                       .in(k)
                       .in(k)
                       .in(cache)
                       .in(cache)
                       .live(kContext - rows)
                       .integer(1)
                       .none()
                       .integer(0)
                       .flag(true)
                       .none()
                       .out(kF32, q.dims);
    const auto plans = plan_all(c);
    ASSERT_TRUE(plans.ok()) << plans.status().message();
    EXPECT_GE(plans->size(), 2U);
    for (const Planned& plan : *plans) {
      SCOPED_TRACE(fmt::format("{}, {} rows", plan.route, rows));
      EXPECT_LE(plan.scratch_bytes, uint64_t{16} << 20);
      // New rows go into the caches and splits are joined on the way.
      if (plan.route == "decode_subgroup") {
        EXPECT_EQ(plan.dispatches, 1U);
      }
    }
  }
}

}  // namespace
}  // namespace pteryx::ops::testing
