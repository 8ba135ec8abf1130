// A layer of a Llama model, as exporters write it: what becomes of it, and what is left alone where
// a pattern does not match.
// SPDX-License-Identifier: BSD-3-Clause
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/fuse/calls.h"
#include "pteryx/fuse/passes.h"
#include "pteryx/ops/table.h"

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about

namespace {

constexpr int64_t kWidth = 64;
constexpr int64_t kHeads = 4;
constexpr int64_t kKvHeads = 2;
constexpr int64_t kSize = 16;
constexpr int64_t kHidden = 96;
constexpr int64_t kRows = 8;
constexpr int64_t kContext = 32;

struct Layer {
  Graph g;
  uint64_t end = 0;
  bool minimums = false;            // of all layers with 4-bit weights
  std::map<ValueId, ValueId> sums;  // over groups, by x

  ValueId tensor(const Dims& dims) { return g.add(Tensor{.dtype = DType::kF32, .max = dims}, ""); }
  ValueId constant(DType t, const Dims& dims) {
    const uint64_t bytes = static_cast<uint64_t>(numel(dims)) * size_bytes(t);
    const uint64_t at = std::exchange(end, end + bytes);
    return g.add(Tensor{.dtype = t, .max = dims, .data = {{0, at, bytes}}}, "");
  }
  ValueId cache() {
    return g.add(Tensor{.dtype = DType::kF32, .max = {1, kContext, kKvHeads, kSize}, .state = true},
                 "");
  }
  ValueId none() { return g.add(Null{}, ""); }
  void node(std::string_view op, std::vector<ValueId> args) {
    Node n;
    n.op = ops::lookup().find(op);
    n.spelling = n.op->name;
    n.args = std::move(args);
    g.nodes.push_back(std::move(n));
  }
  ValueId linear(ValueId x, int64_t k, int64_t n, bool bias = false) {
    const ValueId y = tensor({1, kRows, n});
    node("et_vk.linear_q4gsw.default",
         {x, constant(DType::kU8, {n, k / 2}), constant(DType::kF32, {k / 32, n}),
          g.add(int64_t{32}, ""), bias ? constant(DType::kF32, {n + 4}) : none(), y});
    return minimums ? with_minimums(x, k, y) : y;
  }
  // As files have them: the product of the sums of x with a constant, added to y.
  ValueId with_minimums(ValueId x, int64_t k, ValueId y) {
    const int64_t n = g.tensor(y)->max.back();
    const auto [of_x, fresh] = sums.try_emplace(x);
    if (fresh) {
      const ValueId total = tensor({kRows, k / 32, 1});
      node("aten.sum.dim_IntList", {sized_view(x, {kRows, k / 32, 32}), g.add(IntList{{2}}, ""),
                                    g.add(true, ""), none(), total});
      of_x->second = sized_view(total, {kRows, k / 32});
    }
    const ValueId product = tensor({kRows, n});
    node("aten.mm.default", {of_x->second, constant(DType::kF32, {k / 32, n}), product});
    const ValueId all = tensor({1, kRows, n});
    node("aten.add.Tensor", {y, sized_view(product, {1, kRows, n}), g.add(int64_t{1}, ""), all});
    return all;
  }
  ValueId sized_view(ValueId x, const Dims& dims) {
    const ValueId y = tensor(dims);
    node("aten.view_copy.default", {x, g.add(IntList{{dims.begin(), dims.end()}}, ""), y});
    return y;
  }
  ValueId view(ValueId x, const Dims& dims) {
    const ValueId y = tensor(dims);
    node("aten.view_copy.default", {x, none(), y});
    return y;
  }
  ValueId norm(ValueId x) {
    const Dims dims = g.tensor(x)->max;
    const ValueId y = tensor(dims);
    node("et_vk.rms_norm.default", {x, constant(DType::kF32, {dims.back()}), g.add(1e-5, ""), y});
    return y;
  }
  ValueId add(ValueId a, ValueId b) {
    const ValueId y = tensor({1, kRows, kWidth});
    node("aten.add.Tensor", {a, b, g.add(int64_t{1}, ""), y});
    return y;
  }
  ValueId table(ValueId position) {
    const ValueId y = tensor({kRows, kSize / 2});
    node("aten.slice_copy.Tensor", {constant(DType::kF32, {kContext, kSize / 2}),
                                    g.add(int64_t{0}, ""), position, none(), none(), y});
    return y;
  }

  struct Options {
    bool reads_keys = false;  // somebody else does
    bool reads_norm = false;
    bool reads_gated = false;
    int64_t kv_heads = kKvHeads;
    bool halves = false;  // pairs that turn are half a head apart
    bool head_norms = false;
    bool bias = false;
  };
  ValueId build(const Options& o) {
    const ValueId x = tensor({1, kRows, kWidth});
    const ValueId position = g.add(LiveScalar{}, "position");
    const ValueId cos = table(position);
    const ValueId sin = table(position);
    const ValueId h = norm(x);
    const auto heads = [&](int64_t n) {
      return view(linear(h, kWidth, n * kSize, o.bias), {1, kRows, n, kSize});
    };
    ValueId q = heads(kHeads);
    ValueId k = heads(o.kv_heads);
    const ValueId v = heads(o.kv_heads);
    if (o.head_norms) {
      q = norm(q);
      k = norm(k);
    }
    const ValueId tq = tensor({1, kRows, kHeads, kSize});
    const ValueId tk = tensor({1, kRows, o.kv_heads, kSize});
    const ValueId turned = g.add(ValueList{{tq, tk}}, "");
    if (o.halves) {
      const Dims table = {kContext, kSize};
      node("et_vk.apply_rotary_emb_hf.default",
           {q, k, constant(DType::kF32, table), constant(DType::kF32, table), position, turned});
    } else {
      node("et_vk.apply_rotary_emb.default", {q, k, cos, sin, turned});
    }
    const ValueId y = tensor({1, kRows, kHeads, kSize});
    node("sdpa_with_kv_cache.default",
         {tq, tk, v, cache(), cache(), position, g.add(int64_t{1}, ""), none(), none(),
          g.add(true, ""), none(), y});
    const ValueId r = add(x, linear(view(y, {1, kRows, kHeads * kSize}), kHeads * kSize, kWidth));
    const ValueId f = norm(r);
    const ValueId gate = linear(f, kWidth, kHidden);
    const ValueId up = linear(f, kWidth, kHidden);
    const ValueId s = tensor({1, kRows, kHidden});
    const ValueId silu = tensor({1, kRows, kHidden});
    const ValueId product = tensor({1, kRows, kHidden});
    node("aten.sigmoid.default", {gate, s});
    node("aten.mul.Tensor", {gate, s, silu});
    node("aten.mul.Tensor", {silu, up, product});
    const ValueId out = add(r, linear(product, kHidden, kWidth));
    g.inputs = {x};
    g.outputs = {out};
    if (o.reads_keys) g.outputs.push_back(tk);
    if (o.reads_norm) g.outputs.push_back(f);
    if (o.reads_gated) g.outputs.push_back(product);
    return out;
  }
  // The logits of the last row.
  void head(ValueId x) {
    const ValueId last = tensor({1, kWidth});
    node("aten.select_copy.int", {x, g.add(int64_t{1}, ""), g.add(int64_t{-1}, ""), last});
    const ValueId h = norm(last);
    const ValueId y = tensor({1, kHidden});
    node("aten._weight_int8pack_mm.default",
         {h, constant(DType::kI8, {kHidden, kWidth}), constant(DType::kF32, {kHidden}), y});
    g.outputs = {y};
  }
  std::string run(Precision precision = Precision::kF32) {
    run_passes(g, ops::lookup(), {.precision = precision});
    std::string names;
    for (const Node& n : g.nodes) names += std::string(n.op->name) + " ";
    return names;
  }
};

constexpr std::string_view kFive =
    "pteryx.linear_q4gsw_rope llama.custom_sdpa.default aten.view_copy.default "
    "pteryx.linear_q4gsw pteryx.linear_q4gsw pteryx.linear_q4gsw ";

TEST(Layer, IsFiveNodes) {
  Layer l;
  const ValueId out = l.build({});
  EXPECT_EQ(l.run(), kFive);
  const Node& gated = l.g.nodes[4];
  EXPECT_TRUE(std::get<bool>(l.g[argument(gated, "gated")]));
  EXPECT_NE(l.g.tensor(argument(gated, "norm")), nullptr);
  EXPECT_EQ(std::get<ValueList>(l.g[argument(l.g.nodes[5], "y")]).items, std::vector{out});
  EXPECT_NE(l.g.tensor(argument(l.g.nodes[5], "residual")), nullptr);
}

TEST(Layer, OfOtherModelsIsFiveNodes) {
  for (const bool bias : {false, true}) {
    for (const bool head_norms : {false, true}) {
      Layer l;
      l.build({.halves = true, .head_norms = head_norms, .bias = bias});
      EXPECT_EQ(l.run(), kFive);
      const Node& made = l.g.nodes[0];
      EXPECT_TRUE(std::get<bool>(l.g[argument(made, "halves")]));
      EXPECT_EQ(l.g.tensor(argument(made, "q_norm")) != nullptr, head_norms);
      const Tensor* joined = l.g.tensor(argument(made, "bias"));
      ASSERT_EQ(joined != nullptr, bias);
      if (!bias) continue;
      EXPECT_EQ(joined->max, Dims{(kHeads + 2 * kKvHeads) * kSize});
    }
  }
}

// With the minimums of all its weights, joined as the scales are.
TEST(Layer, WithMinimumsIsFiveNodes) {
  for (const bool halves : {false, true}) {
    Layer l;
    l.minimums = true;
    l.build({.halves = halves, .bias = halves});
    EXPECT_EQ(l.run(), kFive);
    for (const size_t i : {0U, 3U, 4U, 5U}) {
      const Tensor* scales = l.g.tensor(argument(l.g.nodes[i], "scales"));
      const Tensor* own = l.g.tensor(argument(l.g.nodes[i], "minimums"));
      ASSERT_NE(own, nullptr) << i;
      EXPECT_EQ(own->max, scales->max) << i;
      EXPECT_EQ(own->data.size(), scales->data.size()) << i;
      EXPECT_NE(own->data, scales->data) << i;
    }
  }
}

TEST(Layer, TheHeadTakesTheLastRow) {
  Layer l;
  l.head(l.build({}));
  EXPECT_EQ(l.run(), std::string(kFive) + "pteryx.linear_q8 ");
  const Node& head = l.g.nodes.back();
  EXPECT_EQ(l.g.tensor(argument(head, "x"))->max, (Dims{1, kRows, kWidth}));
  EXPECT_TRUE(std::get<bool>(l.g[argument(head, "last")]));
}

TEST(Layer, KeysThatSomebodyElseReadsAreTurnedApart) {
  Layer l;
  l.build({.reads_keys = true});
  const std::string names = l.run();
  EXPECT_NE(names.find("et_vk.apply_rotary_emb.default sdpa_with_kv_cache.default "),
            std::string::npos)
      << names;
  EXPECT_EQ(names.find("et_vk.rms_norm.default"), std::string::npos) << names;
}

TEST(Layer, HeadsThatAreNotTheCachesStay) {
  Layer l;
  l.build({.kv_heads = 1});
  const std::string names = l.run();
  EXPECT_NE(names.find("sdpa_with_kv_cache.default "), std::string::npos) << names;
}

TEST(Layer, ANormThatSomebodyElseReadsStays) {
  Layer l;
  l.build({.reads_norm = true});
  const std::string names = l.run();
  EXPECT_NE(names.find("et_vk.rms_norm.default pteryx.linear_q4gsw "), std::string::npos) << names;
}

// The types of what the nodes write: queries, attention and its view, the sum, the gate, the sum.
std::string types(const Layer& l) {
  std::string all;
  for (const Node& n : l.g.nodes) {
    const auto* const results = std::get_if<ValueList>(&l.g[n.args.back()]);
    const ValueId y = results == nullptr ? n.args.back() : results->items[0];
    all += std::string(name(l.g.tensor(y)->dtype)) + " ";
  }
  return all;
}

TEST(Layer, WhatOnlyProductsReadIsHalvesWhereTheyRoundIt) {
  Layer exact;
  exact.build({});
  exact.run();
  EXPECT_EQ(types(exact), "f32 f32 f32 f32 f32 f32 ");
  Layer rounded;
  rounded.build({});
  rounded.run(Precision::kF16);
  EXPECT_EQ(types(rounded), "f16 f16 f16 f32 f16 f32 ");
  Layer read;
  read.build({.reads_gated = true});
  read.run(Precision::kF16);
  EXPECT_EQ(types(read), "f16 f16 f16 f32 f32 f32 ");
}

}  // namespace
}  // namespace pteryx::fuse
