// KV caches found in graphs made by hand. SPDX-License-Identifier: BSD-3-Clause
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/fuse/passes.h"
#include "pteryx/session/layout.h"
#include "pteryx/session/testing/graphs.h"

namespace pteryx {
namespace {

using fuse::CacheTypes;
using fuse::set_cache_type;
using graph::Tensor;
using graph::ValueId;

struct Draft : testing::GraphDraft {
  // A state of f32, of the dims that caches have.
  ValueId state(const Dims& dims = {1, 16, 2, 8}) {
    return value(Tensor{.dtype = DType::kF32, .max = dims, .state = true});
  }
  // Rows of three tokens, as inputs.
  ValueId rows(int64_t heads, int64_t batch = 1) {
    g.inputs.push_back(tensor({batch, 3, heads, 8}));
    return g.inputs.back();
  }
  void update(ValueId cache) {
    const int64_t batch = g.tensor(cache)->max[0];
    call("update_cache.default", {rows(2, batch), cache, value(int64_t{4}), tensor({1})});
  }
  void attend(ValueId k, ValueId v) {
    const ValueId none = value(graph::Null{});
    g.outputs.push_back(tensor({1, 3, 4, 8}));
    call("llama.custom_sdpa.default",
         {rows(4), k, v, value(int64_t{4}), none, value(0.0), value(true), none, g.outputs.back()});
  }
  void attend_and_update(ValueId k, ValueId v) {
    const ValueId none = value(graph::Null{});
    g.outputs.push_back(tensor({1, 3, 4, 8}));
    call("sdpa_with_kv_cache.default",
         {rows(4), rows(2), rows(2), k, v, value(int64_t{4}), value(int64_t{1}), none, value(0.0),
          value(true), none, g.outputs.back()});
  }
  // Over whole tensors, heads before rows.
  void attend_whole(ValueId k, ValueId v) {
    const ValueId none = value(graph::Null{});
    g.inputs.push_back(tensor({1, 2, 3, 8}));
    g.outputs.push_back(tensor({1, 2, 3, 8}));
    call("et_vk.sdpa.default", {g.inputs.back(), k, v, none, none, g.outputs.back()});
  }
  DType type(ValueId id) const { return g.tensor(id)->dtype; }
  uint64_t state_bytes() const {
    const auto layout = make_layout(g, {.caps = gpu::shared_device()->caps()});
    EXPECT_TRUE(layout.ok()) << layout.status().message();
    return layout.ok() ? layout->memory.state : 0;
  }
};

TEST(KvCache, EveryAttentionOperatorHasThem) {
  Draft d;
  std::vector<ValueId> caches;
  for (int i = 0; i < 4; ++i) caches.push_back(d.state());
  for (int i = 0; i < 2; ++i) caches.push_back(d.state({1, 2, 16, 8}));
  d.update(caches[0]);
  d.update(caches[1]);
  d.attend(caches[0], caches[1]);
  d.attend_and_update(caches[2], caches[3]);
  d.attend_and_update(caches[2], caches[3]);
  d.attend_whole(caches[4], caches[5]);
  const uint64_t before = d.state_bytes();
  const CacheTypes set = set_cache_type(d.g, DType::kF16);
  EXPECT_EQ(set.of_type, 6U);
  EXPECT_EQ(set.others, 0U);
  EXPECT_EQ(set.why, "");
  for (const ValueId id : caches) EXPECT_EQ(d.type(id), DType::kF16);
  EXPECT_EQ(d.state_bytes(), before / 2);
  EXPECT_EQ(set_cache_type(d.g, DType::kF16).of_type, 6U);
  EXPECT_EQ(set_cache_type(d.g, DType::kF32).of_type, 6U);
  for (const ValueId id : caches) EXPECT_EQ(d.type(id), DType::kF32);
}

TEST(KvCache, KeysAndValuesOfOneCallAreNone) {
  Draft d;
  d.g.inputs = {d.tensor({1, 2, 16, 8}), d.tensor({1, 2, 16, 8})};
  d.attend_whole(d.g.inputs[0], d.g.inputs[1]);
  const CacheTypes set = set_cache_type(d.g, DType::kF16);
  EXPECT_EQ(set.of_type + set.others, 0U);
  EXPECT_EQ(set.why, "");
}

TEST(KvCache, WhatElseIsUsedStaysAsItIs) {
  struct Case {
    std::string why;
    void (*use)(Draft& d, ValueId& k);
  };
  const Case cases[] = {
      {"is also used by aten.relu.default (instruction 0)",
       [](Draft& d, ValueId& k) { d.call("aten.relu.default", {k, d.tensor({1, 16, 2, 8})}); }},
      {"is also used by aten.relu.default (instruction 0)",
       [](Draft& d, ValueId& k) { d.call("aten.relu.default", {d.tensor({1, 16, 2, 8}), k}); }},
      {"is also used by aten.cat.default (instruction 0)",
       [](Draft& d, ValueId& k) {
         const ValueId list = d.value(graph::ValueList{{k, k}});
         d.call("aten.cat.default", {list, d.value(int64_t{0}), d.tensor({2, 16, 2, 8})});
       }},
      {"is an input or output of the method",
       [](Draft& d, ValueId& k) { d.g.outputs.push_back(k); }},
      {"does not persist between runs",
       [](Draft& d, ValueId& k) { std::get<Tensor>(d.g.values[graph::index(k)]).state = false; }},
      {"has batches that would share words",
       [](Draft& d, ValueId& k) { k = d.state({3, 5, 1, 3}); }},
  };
  for (const Case& c : cases) {
    Draft d;
    ValueId k = d.state();
    const ValueId v = d.state();
    c.use(d, k);
    d.update(k);
    d.update(v);
    const CacheTypes set = set_cache_type(d.g, DType::kF16);
    EXPECT_EQ(set.of_type, 1U) << c.why;
    EXPECT_EQ(set.others, 1U) << c.why;
    EXPECT_EQ(set.why,
              std::string(d.g.label(k)) + " (f32 " + to_string(d.g.tensor(k)->max) + ") " + c.why);
    EXPECT_EQ(d.type(k), DType::kF32) << c.why;
    EXPECT_EQ(d.type(v), DType::kF16) << c.why;
  }
}

TEST(KvCache, WhatOneMethodCannotChangeStaysInAllThatShareIt) {
  constexpr graph::SharedPlace kFree{.memory = 2, .offset = 0};
  constexpr graph::SharedPlace kUsed{.memory = 2, .offset = 4096};
  Draft attends;
  Draft uses;
  for (Draft* d : {&attends, &uses}) {
    for (const graph::SharedPlace place : {kFree, kUsed}) {
      const ValueId id = d->state();
      std::get<Tensor>(d->g.values[graph::index(id)]).shared = place;
      d->update(id);
      if (d == &uses && place == kUsed)
        d->call("aten.relu.default", {id, d->tensor({1, 16, 2, 8})});
    }
  }
  std::set<graph::SharedPlace> fixed;
  for (const Draft* d : {&attends, &uses}) fuse::find_fixed_caches(d->g, DType::kF16, fixed);
  EXPECT_EQ(fixed, std::set{kUsed});
  for (Draft* d : {&attends, &uses}) {
    const CacheTypes set = set_cache_type(d->g, DType::kF16, fixed);
    EXPECT_EQ(set.of_type, 1U);
    EXPECT_EQ(set.others, 1U);
    const std::string why = d == &attends ? "is shared with a method where it cannot change"
                                          : "is also used by aten.relu.default";
    EXPECT_NE(set.why.find(why), std::string::npos) << set.why;
  }
}

TEST(KvCache, StateOfOtherOperatorsIsNamed) {
  Draft d;
  const ValueId small = d.state({4});
  const ValueId large = d.state();
  d.call("aten.relu.default", {small, d.tensor({4})});
  d.call("aten.relu.default", {large, d.tensor({1, 16, 2, 8})});
  const CacheTypes set = set_cache_type(d.g, DType::kF16);
  EXPECT_EQ(set.of_type + set.others, 0U);
  EXPECT_EQ(set.why,
            "value 1 (f32 [1, 16, 2, 8]) is used by aten.relu.default (instruction 0), "
            "which takes no KV cache");
  EXPECT_EQ(d.type(large), DType::kF32);
  const CacheTypes as_it_is = set_cache_type(d.g, DType::kF32);
  EXPECT_EQ(as_it_is.of_type, 1U);
  EXPECT_EQ(as_it_is.why, "");
}

// Shape rules of equal layers run once a step; those of layers that differ each for itself.
TEST(KvCache, APositionIsComparedWithEveryCache) {
  Draft d;
  d.g.method = "forward";
  const ValueId start = d.value(graph::LiveScalar{});
  d.g.inputs = {d.value(Tensor{.dtype = DType::kI64, .max = {1}})};
  d.call(graph::kItemOp, {d.g.inputs[0], start});
  for (const int64_t capacity : {16, 16, 8, 16}) {
    const ValueId cache = d.state({1, capacity, 2, 8});
    d.call("update_cache.default", {d.rows(2), cache, start, d.tensor({1})});
    d.g.outputs.push_back(d.tensor({1, capacity, 2, 8}));
    d.call("aten.relu.default", {cache, d.g.outputs.back()});
  }
  graph::number_scalars(d.g);
  testing::LoadedGraph loaded(std::move(d.g), {});
  ASSERT_TRUE(loaded.status().ok()) << loaded.status().message();
  int64_t position = 0;
  const std::vector<float> rows(3 * 2 * 8, 1);
  std::vector<Value> inputs = {tensor<int64_t>({1}, std::span<const int64_t>(&position, 1))};
  for (int i = 0; i < 4; ++i) inputs.push_back(tensor<float>({1, 3, 2, 8}, rows));
  for (const int64_t at : {0, 2, 5}) {
    position = at;
    const auto ran = loaded.run(inputs);
    EXPECT_TRUE(ran.ok()) << ran.status().message();
  }
  EXPECT_EQ(loaded.method().recordings(), 1U);
  position = 6;
  const auto refused = loaded.run(inputs);
  ASSERT_FALSE(refused.ok());
  const std::string message(refused.status().message());
  EXPECT_NE(message.find("start_pos 6 + 3 rows exceed the 8 rows of cache"), std::string::npos)
      << message;
}

}  // namespace
}  // namespace pteryx
