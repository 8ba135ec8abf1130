// Methods with control flow: what is checked, planned and compared with limits before they run.
// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/session/limits.h"
#include "pteryx/session/testing/graphs.h"

namespace pteryx {
namespace {

using graph::LiveScalar;
using graph::ScalarKind;
using graph::Tensor;
using graph::ValueId;

// Input 0 is a flag, input 1 is x, [4].
struct Draft : testing::GraphDraft {
  ValueId flag = value(Tensor{.dtype = DType::kBool, .max = {1}});
  ValueId x = tensor({4});
  ValueId yes = value(LiveScalar{.kind = ScalarKind::kBool});
  ValueId one = value(int64_t{1});

  Draft() {
    g.has_jumps = true;
    g.inputs = {flag, x};
    call(graph::kItemOp, {flag, yes});
  }
  void jump_if_not(ValueId condition, uint32_t target) {
    graph::Node n;
    n.kind = graph::Node::Kind::kJumpFalse;
    n.args = {condition};
    n.target = target;
    g.nodes.push_back(std::move(n));
  }
  // y = -x; if yes: what `make` adds, which may write y.
  ValueId branch(const auto& make) {
    const ValueId y = tensor({4});
    call("aten.neg.default", {x, y});
    const size_t jump = g.nodes.size();
    jump_if_not(yes, 0);
    make(y);
    g.nodes[jump].target = static_cast<uint32_t>(g.nodes.size());
    g.outputs = {y};
    return y;
  }
  Result<Layout> layout() const {
    gpu::Caps caps;
    return make_layout(g, {.caps = caps, .forced_routes = {{"qlinear", "gemv"}}});
  }
  std::string error() const {
    const auto l = layout();
    EXPECT_TRUE(l.ok() || l.status().code() == Code::kInvalidProgram);
    return l.ok() ? "" : std::string(l.status().message());
  }
};

TEST(Jumps, EveryNodeIsPlanned) {
  Draft d;
  d.branch([&](ValueId y) { d.call("aten.relu.default", {d.x, y}); });
  const auto l = d.layout();
  ASSERT_TRUE(l.ok()) << l.status().message();
  for (size_t i = 0; i < d.g.nodes.size(); ++i)
    EXPECT_EQ(l->plans[i].has_value(), l->place[i] == Place::kGpu) << i;
}

TEST(Jumps, TheFirstRunFindsItsShadersCompiled) {
  Draft d;
  d.branch([&](ValueId y) { d.call("aten.relu.default", {d.x, y}); });
  testing::LoadedGraph loaded(std::move(d.g), {});
  ASSERT_TRUE(loaded.status().ok()) << loaded.status().message();
  const std::vector<float> x = {1, -2, 3, -4};
  const uint64_t before = gpu::shared_device()->counters().pipelines_created;
  for (const bool yes : {true, false, true}) {
    const bool flag[] = {yes};
    const Value inputs[] = {
        TensorView{.dtype = DType::kBool, .dims = {1}, .data = flag, .size_bytes = 1},
        tensor<float>({4}, x)};
    const auto y = loaded.run(inputs);
    ASSERT_TRUE(y.ok()) << y.status().message();
    const auto got = y->front().tensor()->as<float>();
    EXPECT_EQ(std::vector<float>(got.begin(), got.end()),
              yes ? (std::vector<float>{1, 0, 3, 0}) : (std::vector<float>{-1, 2, -3, 4}));
  }
  EXPECT_EQ(gpu::shared_device()->counters().pipelines_created, before);
}

// What a branch cannot compute whatever the data is known before it is taken.
TEST(Jumps, ContradictionsOfFixedSizesAreRefused) {
  Draft d;
  d.branch([&](ValueId y) { d.call("aten.add.Tensor", {d.x, d.tensor({3}), d.one, y}); });
  EXPECT_NE(d.error().find("a [4] and b [3] do not broadcast"), std::string::npos) << d.error();
  // Unless an input may be smaller: then the branch may be for sizes that it can do.
  std::get<Tensor>(d.g.values[graph::index(d.x)]).dynamic = true;
  EXPECT_EQ(d.error(), "");
}

TEST(Jumps, RepackedWeightsAreComparedWithLimits) {
  Draft d;
  const ValueId w = d.value(Tensor{.dtype = DType::kU8, .max = {4, 2}, .data = {{0, 0, 8}}});
  const ValueId s = d.value(Tensor{.dtype = DType::kF32, .max = {1, 4}, .data = {{0, 8, 16}}});
  d.branch([&](ValueId y) {
    d.call("et_vk.linear_q4gsw.default",
           {d.x, w, s, d.value(int64_t{4}), d.value(graph::Null{}), y});
  });
  const auto l = d.layout();
  ASSERT_TRUE(l.ok()) << l.status().message();
  gpu::Caps caps;
  caps.max_binding_bytes = 63;
  EXPECT_NE(
      std::string(check_limits(d.g, *l, caps).message()).find("rows of 2 bytes in 16: 64 bytes"),
      std::string::npos);
  EXPECT_GE(l->memory.constants, 64U);
}

// Sizes that follow from a counter are the run's, and so are those that a later node hands back to
// the beginning of a loop.
TEST(Jumps, SizesThatDataDecideAreLeftToTheRun) {
  Draft d;
  const ValueId counter = d.value(LiveScalar{});
  const ValueId rows = d.tensor({4});
  const ValueId sum = d.tensor({4});
  const ValueId zero = d.value(int64_t{0});
  d.call("aten.relu.default", {d.x, rows});
  const auto loop = static_cast<uint32_t>(d.g.nodes.size());
  d.call("aten.add.Tensor", {rows, d.tensor({3}), d.one, sum});  // right once rows are three
  d.call("aten.slice_copy.Tensor", {d.x, zero, zero, counter, d.one, rows});
  d.call("add", {counter, d.one, counter});
  d.jump_if_not(d.yes, loop);
  d.g.outputs = {sum};
  EXPECT_EQ(d.error(), "");
  // Without the loop, rows are four.
  d.g.nodes.resize(loop + 1);
  d.jump_if_not(d.yes, loop);
  EXPECT_NE(d.error().find("do not broadcast"), std::string::npos);
}

}  // namespace
}  // namespace pteryx
