// Networks as exporters write them: what passes make of them gives what their parts give, in fewer
// dispatches.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/fuse/passes.h"
#include "pteryx/session/testing/graphs.h"

namespace pteryx {
namespace {

using graph::IntList;
using graph::ValueId;

// A graph over one input; equal networks hold equal numbers.
struct Network : testing::GraphDraft {
  std::vector<float> constants;
  std::mt19937 random{7};
  uint32_t seed = 0;         // of choices
  DType type = DType::kF32;  // of results and constants

  const Dims& dims(ValueId x) const { return g.tensor(x)->max; }
  ValueId none() { return value(graph::Null{}); }
  ValueId number(double v) { return value(v); }
  ValueId integer(int64_t v) { return value(v); }
  ValueId ints(std::vector<int64_t> v) { return value(IntList{std::move(v)}); }
  ValueId input(const Dims& dims) {
    g.inputs = {tensor(dims)};
    return g.inputs[0];
  }
  ValueId constant(const Dims& dims, float scale = 1) {
    const auto count = static_cast<size_t>(numel(dims));
    graph::Tensor t{.dtype = type, .max = dims, .data = {{0, constants.size() * 4, count * 4}}};
    if (type != DType::kF32) t.stored = DType::kF32;
    for (size_t i = 0; i < count; ++i)
      constants.push_back((static_cast<float>(random() % 1000) / 500.0F - 1.0F) * scale);
    return value(std::move(t));
  }
  ValueId node(std::string_view op, std::vector<ValueId> args, const Dims& dims) {
    return node(op, std::move(args), dims, type);
  }
  ValueId node(std::string_view op, std::vector<ValueId> args, const Dims& dims, DType t) {
    args.push_back(value(graph::Tensor{.dtype = t, .max = dims}));
    call(op, args);
    return args.back();
  }
  ValueId like(std::string_view op, std::vector<ValueId> args) {
    const Dims d = dims(args[0]);
    return node(op, std::move(args), d);
  }
  ValueId cast(ValueId x, DType t) { return node(graph::kCopyOp, {x}, dims(x), t); }
  ValueId view(ValueId x, const Dims& to) {
    return node("aten.view_copy.default", {x, ints({to.begin(), to.end()})}, to);
  }
  ValueId permute(ValueId x, const std::vector<int64_t>& order) {
    Dims to;
    for (const int64_t d : order) to.push_back(dims(x)[static_cast<size_t>(d)]);
    return node("aten.permute_copy.default", {x, ints(order)}, to);
  }
  ValueId add(ValueId a, ValueId b) { return like("aten.add.Tensor", {a, b, integer(1)}); }
  ValueId bmm(ValueId a, ValueId b) {
    return node("aten.bmm.default", {a, b}, {dims(a)[0], dims(a)[1], dims(b)[2]});
  }
  ValueId linear(ValueId x, int64_t n) {
    Dims to = dims(x);
    const int64_t k = to.back();
    to[to.rank() - 1] = n;
    return node("aten.linear.default", {x, constant({n, k}, 0.3F), constant({n})}, to);
  }
  // Heads [H, S, D] as the exporter writes their attention, with the guard of rows without keys.
  ValueId attention(ValueId q, ValueId k, ValueId v) {
    const size_t first = dims(q).rank() - 3;  // heads may have a batch of 1 before them
    const int64_t h = dims(q)[first];
    const int64_t s = dims(q)[first + 1];
    const int64_t d = dims(q)[first + 2];
    const int64_t keys = dims(k)[first + 1];
    const auto with_batch = [&](ValueId x, const Dims& to) { return first == 1 ? x : view(x, to); };
    const double root = std::sqrt(1 / std::sqrt(static_cast<double>(d)));
    const ValueId kt = permute(with_batch(k, {1, h, keys, d}), {0, 1, 3, 2});
    const ValueId scaled_q = like("aten.mul.Scalar", {with_batch(q, {1, h, s, d}), number(root)});
    const ValueId scaled_k = like("aten.mul.Scalar", {kt, number(root)});
    const ValueId scores =
        view(bmm(view(scaled_q, {h, s, d}), view(scaled_k, {h, d, keys})), {1, h, s, keys});
    const Dims all = {1, h, s, keys};
    const ValueId hidden =
        node("aten.eq.Scalar", {scores, number(-std::numeric_limits<double>::infinity())}, all,
             DType::kBool);
    const ValueId seen = node("aten.logical_not.default", {hidden}, all, DType::kBool);
    const ValueId any =
        node("aten.any.dim", {seen, integer(-1), value(true)}, {1, h, s, 1}, DType::kBool);
    const ValueId soft = like("aten._softmax.default", {scores, integer(-1), value(false)});
    const ValueId zeros =
        like("aten.full_like.default", {soft, integer(0), none(), none(), none(), none(), none()});
    const ValueId empty = node("aten.logical_not.default", {any}, {1, h, s, 1}, DType::kBool);
    const ValueId weights = node("aten.where.self", {empty, zeros, soft}, all);
    return bmm(view(weights, {h, s, keys}), view(v, {h, keys, d}));
  }
  ValueId conv(ValueId x, int64_t channels, int64_t kernel) {
    Dims to = dims(x);
    const int64_t in = to[1];
    to[1] = channels;
    return node(
        "aten.convolution.default",
        {x, constant({channels, in, kernel, kernel}, 0.3F), constant({channels}), ints({1, 1}),
         ints({kernel / 2, kernel / 2}), ints({1, 1}), value(false), ints({0, 0}), integer(1)},
        to);
  }
};

struct Run {
  std::vector<std::vector<float>> y;
  uint64_t dispatches = 0;
  std::string names;
};
using Build = std::function<void(Network&)>;
Run run(const Build& build, bool fused, uint32_t seed, const std::string& routes) {
  Network n;
  n.seed = seed;
  build(n);
  if (fused) fuse::run_passes(n.g, ops::lookup());
  Run result;
  for (const graph::Node& node : n.g.nodes) result.names += std::string(node.op->name) + " ";
  const Dims dims = n.dims(n.g.inputs[0]);
  std::vector<float> x;
  for (int64_t i = 0; i < numel(dims); ++i)
    x.push_back(static_cast<float>(i * 37 % 101) / 50.0F - 1.0F);
  const std::vector<Value> inputs = {
      TensorView{.dtype = DType::kF32, .dims = dims, .data = x.data(), .size_bytes = x.size() * 4}};
  const auto constants = std::as_bytes(std::span(n.constants));
  std::vector<std::byte> bytes(constants.begin(), constants.end());
  testing::LoadedGraph loaded(
      std::move(n.g), {std::make_shared<MemorySource>("constants", std::move(bytes))}, routes);
  EXPECT_TRUE(loaded.status().ok()) << loaded.status().message();
  if (!loaded.status().ok()) return result;
  const uint64_t before = gpu::shared_device()->counters().dispatches;
  const auto out = loaded.run(inputs);
  EXPECT_TRUE(out.ok()) << out.status().message();
  if (!out.ok()) return result;
  result.dispatches = gpu::shared_device()->counters().dispatches - before;
  for (const Value& v : *out) {
    const TensorView& t = *v.tensor();
    const auto* f = static_cast<const float*>(t.data);
    result.y.emplace_back(f, f + t.size_bytes / 4);
  }
  return result;
}

// Returns the operators of the fused network.
std::string expect_same(const Build& build, uint32_t seed = 0, const std::string& routes = "",
                        double tolerance = 2e-5) {
  const Run plain = run(build, false, seed, routes);
  const Run fused = run(build, true, seed, routes);
  EXPECT_LE(fused.dispatches, plain.dispatches) << fused.names;
  EXPECT_EQ(fused.y.size(), plain.y.size());
  for (size_t o = 0; o < std::min(fused.y.size(), plain.y.size()); ++o) {
    EXPECT_EQ(fused.y[o].size(), plain.y[o].size());
    double worst = 0;
    for (size_t i = 0; i < std::min(fused.y[o].size(), plain.y[o].size()); ++i)
      worst = std::fmax(worst, std::fabs(fused.y[o][i] - plain.y[o][i]));
    EXPECT_LT(worst, tolerance) << fused.names;
  }
  return fused.names;
}
bool has(const std::string& names, std::string_view op) {
  return names.find(std::string(op) + " ") != std::string::npos;
}

// Self-attention over heads that one layer has made. Programs in f16 have them as f32 between their
// delegates, one of which may make the values and another the rest.
void packed_heads(Network& n, DType t) {
  const ValueId given = n.input({1, 9, 24});
  n.type = t;
  const ValueId x = t == DType::kF32 ? given : n.cast(given, t);
  const ValueId rows = n.view(n.permute(x, {1, 0, 2}), {9, 24});
  const ValueId packed = n.permute(n.view(n.linear(rows, 72), {1, 9, 1, 3, 24}), {3, 1, 2, 0, 4});
  const ValueId parts = n.view(packed, {3, 9, 1, 24});
  const ValueId other = t == DType::kF32 ? parts : n.cast(n.cast(parts, DType::kF32), t);
  const auto heads = [&](ValueId from, int64_t part) {
    const ValueId one =
        n.node("aten.select_copy.int", {from, n.integer(0), n.integer(part)}, {9, 1, 24});
    return n.permute(n.view(one, {9, 3, 8}), {1, 0, 2});
  };
  const ValueId q = heads(parts, 0);
  const ValueId k = heads(parts, 1);
  const ValueId y = n.view(n.attention(q, k, heads(other, 2)), {1, 3, 9, 8});
  const ValueId back = n.permute(n.permute(n.permute(y, {2, 0, 1, 3}), {1, 2, 0, 3}), {2, 0, 1, 3});
  const ValueId out = n.linear(n.view(back, {9, 24}), 24);
  const ValueId sum = n.add(n.permute(n.view(out, {9, 1, 24}), {1, 0, 2}), x);
  n.g.outputs = {t == DType::kF32 ? sum : n.cast(sum, DType::kF32)};
}

TEST(FusedNetworks, PackedHeadsAreReadWhereTheyAre) {
  for (const DType t : {DType::kF32, DType::kF16}) {
    const std::string names =
        expect_same([&](Network& n) { packed_heads(n, t); }, 0, "", t == DType::kF32 ? 2e-5 : 5e-3);
    EXPECT_TRUE(has(names, "pteryx.attention")) << names;
    for (const char* gone :
         {"aten.permute_copy.default", "aten.select_copy.int", "aten.bmm.default",
          "aten._softmax.default", "aten.where.self", "aten.eq.Scalar"})
      EXPECT_FALSE(has(names, gone)) << gone << ": " << names;
  }
}

TEST(FusedNetworks, TransposedWeightsAreLinearLayers) {
  const std::string names = expect_same([](Network& n) {
    const ValueId x = n.input({1, 11, 16});
    const auto heads = [&] {
      const ValueId w = n.permute(n.constant({16, 16}, 0.3F), {1, 0});
      const ValueId b =
          n.node("aten.expand_copy.default", {w, n.ints({1, 16, 16}), n.value(false)}, {1, 16, 16});
      const ValueId y = n.bmm(n.view(x, {1, 11, 16}), n.view(b, {1, 16, 16}));
      return n.permute(n.view(y, {1, 11, 2, 8}), {0, 2, 1, 3});
    };
    const ValueId q = heads();
    const ValueId k = heads();
    const ValueId y = n.attention(q, k, heads());
    n.g.outputs = {n.view(n.permute(n.view(y, {1, 2, 11, 8}), {0, 2, 1, 3}), {11, 16})};
  });
  EXPECT_TRUE(has(names, "pteryx.attention") && has(names, "aten.linear.default")) << names;
  EXPECT_FALSE(has(names, "aten.permute_copy.default") || has(names, "aten.expand_copy.default"))
      << names;
}

TEST(FusedNetworks, HeadsThatComeAsTheyAreStayThere) {
  const std::string names = expect_same([](Network& n) {
    const ValueId x = n.input({3, 5, 8});
    n.g.outputs = {n.attention(x, n.constant({3, 7, 8}), n.constant({3, 7, 8}))};
  });
  EXPECT_TRUE(has(names, "et_vk.sdpa.default")) << names;
}

TEST(FusedNetworks, PermutationsThatMoveSomethingStay) {
  const std::string names = expect_same([](Network& n) {
    const ValueId x = n.input({2, 3, 4});
    const ValueId y = n.permute(n.permute(x, {1, 0, 2}), {0, 2, 1});
    n.g.outputs = {n.like("aten.relu.default", {y}),
                   n.like("aten.relu.default", {n.permute(x, {2, 1, 0})})};
  });
  EXPECT_TRUE(has(names, "aten.permute_copy.default")) << names;
}

// Chains of what may stand behind a convolution, in any order; some of it fits into the
// convolution, some stays.
TEST(FusedNetworks, WhatFollowsAConvolution) {
  for (uint32_t seed = 0; seed < 12; ++seed) {
    expect_same(
        [](Network& n) {
          std::mt19937 choice(n.seed);
          const ValueId x = n.input({1, 4, 6, 5});
          ValueId y = n.conv(x, 4, 3);
          for (auto i = choice() % 4 + 1; i > 0; --i) {
            switch (choice() % 7) {
              case 0: y = n.like("aten.relu.default", {y}); break;
              case 1: y = n.like("aten.silu.default", {y}); break;
              case 2: y = n.like("aten.hardswish.default", {y}); break;
              case 3: y = n.like("aten.hardtanh.default", {y, n.number(-0.5), n.integer(1)}); break;
              case 4: y = n.add(choice() % 2 == 0 ? y : x, choice() % 3 == 0 ? y : x); break;
              case 5: y = n.add(y, n.constant({1, 4, 1, 1})); break;
              default: y = n.like("aten.clone.default", {y, n.none()}); break;
            }
          }
          n.g.outputs = {choice() % 4 == 0 ? n.conv(y, 2, 1) : y};
        },
        seed);
  }
}

// As exporters leave it that do not fold constants; with a bias that the convolution has, without
// one that the norm has.
TEST(FusedNetworks, BatchNormBehindAConvolution) {
  for (const bool affine : {true, false}) {
    const std::string names = expect_same([&](Network& n) {
      const ValueId y = n.conv(n.input({1, 4, 6, 5}), 6, 3);
      const ValueId mean = n.constant({6});
      const ValueId variance = n.constant({6}, 0.25F);
      const ValueId normed = n.tensor({1, 6, 6, 5});
      n.call("aten._native_batch_norm_legit_no_training.default",
             {y, affine ? n.constant({6}) : n.none(), affine ? n.constant({6}) : n.none(), mean,
              variance, n.number(0.1), n.number(0.5),
              n.value(graph::ValueList{{normed, n.tensor({0}), n.tensor({0})}})});
      n.g.outputs = {n.like("aten.relu.default", {normed})};
    });
    EXPECT_EQ(names == "pteryx.conv ", affine) << names;
  }
}

// What a diffusion network adds to the channels of its images.
TEST(FusedNetworks, ChannelsOfAConvolution) {
  const std::string names = expect_same([](Network& n) {
    const ValueId y = n.conv(n.input({1, 4, 6, 5}), 4, 3);
    n.g.outputs = {n.like("aten.relu.default", {n.add(y, n.constant({1, 4, 1, 1}))})};
  });
  EXPECT_EQ(names, "pteryx.conv ");
}

TEST(FusedNetworks, ABlockOfResNet) {
  const std::string names = expect_same([](Network& n) {
    const ValueId x = n.input({1, 4, 6, 6});
    const ValueId a = n.like("aten.relu.default", {n.conv(x, 3, 1)});
    const ValueId b = n.like("aten.relu.default", {n.conv(a, 3, 3)});
    const ValueId left = n.conv(b, 8, 1);
    const ValueId right = n.conv(x, 8, 1);
    n.g.outputs = {n.like("aten.relu.default", {n.add(left, right)})};
  });
  EXPECT_EQ(names, "pteryx.conv pteryx.conv aten.convolution.default pteryx.conv ");
}

TEST(FusedNetworks, ABlockOfConvNext) {
  const std::string names = expect_same([](Network& n) {
    const ValueId x = n.input({1, 8, 3, 5});
    const ValueId rows = n.view(n.permute(x, {0, 2, 3, 1}), {15, 8});
    const ValueId wide = n.view(n.linear(rows, 24), {15, 24});
    const ValueId back =
        n.linear(n.like("aten.gelu.default", {wide, n.value(std::string("none"))}), 8);
    const ValueId planes = n.permute(n.view(back, {1, 3, 5, 8}), {0, 3, 1, 2});
    const ValueId scaled = n.node("aten.mul.Tensor", {n.constant({8, 1, 1}), planes}, {1, 8, 3, 5});
    n.g.outputs = {n.add(scaled, x)};
  });
  for (const char* gone : {"aten.gelu.default", "aten.mul.Tensor", "aten.add.Tensor"})
    EXPECT_FALSE(has(names, gone)) << names;
}

// Routes are not what this is about: the one that compiles fastest.
TEST(FusedNetworks, WhatFollowsALinearLayer) {
  for (uint32_t seed = 0; seed < 12; ++seed) {
    expect_same(
        [](Network& n) {
          std::mt19937 choice(n.seed);
          const ValueId x = n.input({1, 6, 8});
          ValueId y = n.linear(x, 8);
          for (auto i = choice() % 5 + 1; i > 0; --i) {
            switch (choice() % 6) {
              case 0: y = n.like("aten.relu.default", {y}); break;
              case 1:
                y = n.like("aten.gelu.default",
                           {y, n.value(std::string(choice() % 2 == 0 ? "tanh" : "none"))});
                break;
              case 2: {
                const Dims d = n.dims(y);
                const Dims factors = choice() % 2 == 0 ? Dims{d.back()} : Dims{d[1], 1};
                y = n.like("aten.mul.Tensor", {y, n.constant(factors)});
                break;
              }
              case 3: y = n.add(y, choice() % 2 == 0 ? n.constant(n.dims(y)) : y); break;
              case 4: y = n.permute(y, {0, 2, 1}); break;
              default: y = n.view(n.view(y, {1, 48}), n.dims(y)); break;
            }
          }
          n.g.outputs = {y};
        },
        seed, "matmul:naive");
  }
}

// Rows of a group that are cut into parts, and such as are not.
TEST(FusedNetworks, SiluBehindAGroupNorm) {
  for (const int64_t side : {3, 48}) {
    const std::string names = expect_same([&](Network& n) {
      const ValueId x = n.input({1, 8, side, side});
      const ValueId y = n.tensor({1, 8, side, side});
      n.call("aten.native_group_norm.default",
             {x, n.constant({8}), n.constant({8}), n.integer(1), n.integer(8),
              n.integer(side * side), n.integer(2), n.number(1e-5),
              n.value(graph::ValueList{{y, n.tensor({1, 2}), n.tensor({1, 2})}})});
      n.g.outputs = {n.like("aten.silu.default", {y})};
    });
    EXPECT_EQ(names, "pteryx.group_norm ");
  }
}

TEST(FusedNetworks, AResultThatSomebodyElseReadsStays) {
  const std::string names = expect_same([](Network& n) {
    const ValueId y = n.conv(n.input({1, 4, 6, 6}), 3, 1);
    n.g.outputs = {n.like("aten.relu.default", {y}), y};
  });
  EXPECT_EQ(names, "aten.convolution.default aten.relu.default ");
}

}  // namespace
}  // namespace pteryx
