// Query heads of decode attention that share workgroups, against a plain reference in double.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "pteryx/gpu/testing/compute.h"
#include "pteryx/ops/attention/decode_cut.h"
#include "pteryx/ops/testing/attention_calls.h"

namespace pteryx::ops::testing {
namespace {

constexpr const char* kRoute = "decode_subgroup";
constexpr DType kF32 = DType::kF32;
constexpr DType kF16 = DType::kF16;

int64_t shared_of(int64_t heads, int64_t group, int64_t size, int64_t keys, const gpu::Caps& caps) {
  attention::Attention a;
  a.heads = heads;
  a.group = group;
  a.rows = 1;
  a.size = size;
  a.k.dtype = a.v.dtype = kF16;
  return attention::decode_cut(a, keys, caps).shared;
}

void expect_shared(int64_t shared, const AttentionShape& s, DType t, DType cache,
                   const std::function<void(gpu::Caps&)>& mask = nullptr) {
  SCOPED_TRACE(fmt::format("hq {} hkv {} d {} capacity {} pos {} {} {}", s.hq, s.hkv, s.d,
                           s.capacity, s.pos, name(t), name(cache)));
  EXPECT_EQ(shared_of(s.hq, s.hq / s.hkv, s.d, s.pos + 1, gpu::shared_device()->caps()), shared);
  const CachedCall c(s, t, cache);
  const bool half = t == kF16 || cache == kF16;
  expect_route(c.causal_call(), kRoute, c.want(Rule::kCausal, c.scale()),
               half ? kAttentionHalf : kAttentionFloat, mask);
}

// Shuffles among fewer lanes than share a key do not do.
bool has_route() {
  const gpu::Caps& caps = gpu::shared_device()->caps();
  return caps.subgroups && caps.subgroup_min >= 8;
}

TEST(SharedHeads, TwoWhereKeysAreSplit) {
  gpu::Caps caps;
  caps.subgroups = true;
  caps.subgroup_min = caps.subgroup_max = 32;
  EXPECT_EQ(shared_of(32, 4, 64, 256, caps), 1);
  EXPECT_EQ(shared_of(32, 4, 64, 257, caps), 2);
  EXPECT_EQ(shared_of(32, 4, 64, 8192, caps), 2);
  EXPECT_EQ(shared_of(32, 2, 64, 8192, caps), 2);
  EXPECT_EQ(shared_of(32, 1, 64, 8192, caps), 1);
  EXPECT_EQ(shared_of(33, 3, 64, 8192, caps), 1);
  EXPECT_EQ(shared_of(36, 6, 64, 8192, caps), 2);
}

// Contexts on both sides of where a split, a step and a pass begin.
TEST(SharedHeads, Splits) {
  if (!has_route()) return;
  for (const int64_t pos : {0,   63,  64,  127, 128, 129, 254, 255, 256,  257,  383, 384,
                            385, 511, 512, 513, 640, 767, 768, 769, 1023, 1024, 1025}) {
    expect_shared(pos < 256 ? 1 : 2, {8, 2, 32, 1100, 1, pos}, kF32, kF16);
  }
  for (const int64_t pos : {2300, 4095, 4100})
    expect_shared(2, {32, 8, 64, 4200, 1, pos}, kF32, kF16);
  // A small GPU has fewer workgroups, which pass over their keys several times.
  const auto small = [](gpu::Caps& caps) { caps.sizes.processors = 1; };
  for (const int64_t pos : {900, 1090})
    expect_shared(2, {64, 8, 8, 1100, 1, pos}, kF32, kF16, small);
}

TEST(SharedHeads, Groups) {
  if (!has_route()) return;
  const bool few = emulated_caps().software;  // they take long to compile
  for (const int64_t group : {1, 2, 3, 4, 8}) {
    for (const int64_t heads : {1, 2, 3, 8}) {
      if (heads * group < 3 || (few && heads != (group == 8 ? 8 : 3))) continue;
      expect_shared(group % 2 == 0 ? 2 : 1, {heads * group, heads, 8, 600, 1, 590}, kF32, kF32);
    }
  }
}

// Units of eight and four, teams of eight and four, lanes without a column.
TEST(SharedHeads, Sizes) {
  if (!has_route()) return;
  const auto expect = [](int64_t d, int64_t hkv, DType cache) {
    SCOPED_TRACE(fmt::format("size {}, {} heads of k, {}", d, hkv, name(cache)));
    const CachedCall c({4, hkv, d, 600, 1, 590}, kF16, cache);
    expect_route(c.causal_call(), kRoute, c.want(Rule::kCausal, c.scale()), kAttentionHalf);
  };
  expect(36, 1, kF16);
  expect(128, 2, kF32);
  if (emulated_caps().software) return;  // they take long to compile
  for (const int64_t d :
       {4, 8, 12, 16, 32, 40, 64, 72, 80, 96, 100, 112, 128, 160, 192, 252, 256}) {
    for (const int64_t hkv : {1, 2}) {
      for (const DType cache : {kF16, kF32}) expect(d, hkv, cache);
    }
  }
}

// Without rows to be written, and with what masks add for each head.
TEST(SharedHeads, CachesAndMasks) {
  if (!has_route()) return;
  const CachedCall c({8, 2, 8, 700, 1, 590}, kF32, kF16);
  expect_route(Case("custom_sdpa.default")
                   .in(c.q)
                   .in(c.k_cache)
                   .in(c.v_cache)
                   .live(590)
                   .none()
                   .integer(0)
                   .flag(true)
                   .none()
                   .out(kF32, c.q.dims),
               kRoute,
               {attention_reference(c.q, c.k_cache, c.v_cache, 591, 590, Rule::kCausal, c.scale())},
               kAttentionHalf);
  for (const DType t : {kF32, DType::kBool}) {
    const TestTensor mask = random(t, {1, 650}, 9);
    expect_route(
        c.call().integer(590).integer(1).in(mask).integer(0).flag(true).none().out(kF32, c.q.dims),
        kRoute,
        {attention_reference(c.q, c.new_k(), c.new_v(), 650, 590, Rule::kAll, c.scale(), &mask),
         c.new_k(), c.new_v()},
        kAttentionHalf);
  }
}

// Scores that differ by much between heads and keys; rows behind the last key that hold anything.
TEST(SharedHeads, PeaksAreEachHeadsOwn) {
  if (!has_route()) return;
  constexpr int64_t kSize = 8;
  constexpr int64_t kPos = 590;
  CachedCall c({4, 1, kSize, 700, 1, kPos}, kF32, kF32);
  for (size_t i = 0; i < c.q.data.size(); ++i)
    c.q.data[i] *= std::pow(8.0, static_cast<double>(i / kSize)) / 8;
  c.q = round_to(c.q, kF32);
  for (TestTensor* const cache : {&c.k_cache, &c.v_cache})
    std::fill(cache->data.begin() + (kPos + 1) * kSize, cache->data.end(), NAN);
  const auto want =
      attention_reference(c.q, c.new_k(), c.new_v(), kPos + 1, kPos, Rule::kCausal, c.scale());
  expect_route(c.causal_call(), kRoute, {want}, {2e-3, 2e-3});
}

}  // namespace
}  // namespace pteryx::ops::testing
