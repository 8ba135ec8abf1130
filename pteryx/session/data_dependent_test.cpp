// Layouts of graphs that read a number out of an input, as the position of a decode step: what is
// checked and planned behind it.
// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/graph/build.h"
#include "pteryx/program/testing/build.h"
#include "pteryx/session/layout.h"
#include "pteryx/session/testing/graphs.h"

namespace pteryx {
namespace {

using graph::LiveScalar;
using graph::ValueId;

// `n` is read from input 0; `table` is input 1, [8, 4].
struct Draft : testing::GraphDraft {
  ValueId n = value(LiveScalar{});
  ValueId table = tensor({8, 4});
  ValueId zero = integer(0);
  ValueId one = integer(1);

  Draft() {
    const ValueId x = tensor({1});
    g.inputs = {x, table};
    call(graph::kItemOp, {x, n});
  }
  ValueId integer(int64_t v) { return value(v); }
  ValueId result(std::string_view op, std::vector<ValueId> args, const Dims& dims) {
    args.push_back(tensor(dims));
    call(op, args);
    return args.back();
  }
  // Rows of the table.
  ValueId slice(ValueId from, ValueId to) {
    return result("aten.slice_copy.Tensor", {table, zero, from, to, one}, {8, 4});
  }
  ValueId add(ValueId a, ValueId b, const Dims& dims) {
    return result("aten.add.Tensor", {a, b, one}, dims);
  }
  ValueId relu(ValueId x, const Dims& dims) { return result("aten.relu.default", {x}, dims); }
  ValueId view(ValueId x, const std::vector<ValueId>& size, const Dims& dims) {
    return result("aten.view_copy.default", {x, value(graph::ValueList{size})}, dims);
  }
  Result<Layout> layout() const {
    gpu::Caps caps;
    caps.max_buffer_bytes = caps.max_binding_bytes = 1U << 30;
    return make_layout(g, {.caps = caps});
  }
  std::string error() const {
    const auto l = layout();
    return l.ok() ? "" : std::string(l.status().message());
  }
};

TEST(DataDependent, SizesArePlannedAtTheirBound) {
  Draft d;
  d.relu(d.slice(d.zero, d.n), {8, 4});
  d.relu(d.table, {8, 4});
  const auto l = d.layout();
  ASSERT_TRUE(l.ok()) << l.status().message();
  ASSERT_EQ(l->plans.size(), 4U);
  EXPECT_FALSE(l->plans[0]);  // reads the scalar
  for (size_t i = 1; i < 4; ++i) {
    ASSERT_TRUE(l->plans[i]) << i;
    EXPECT_EQ(l->plans[i]->dispatches.size(), 1U) << i;
  }
  const ops::PlannedDispatch& behind = l->plans[2]->dispatches[0];
  const ops::PlannedDispatch& whole = l->plans[3]->dispatches[0];
  EXPECT_EQ(behind.params, whole.params);
  EXPECT_EQ(behind.grid, whole.grid);
  EXPECT_EQ(behind.code, whole.code);
}

TEST(DataDependent, PlansSayWhichScalarsTheyRead) {
  Draft d;
  d.slice(d.n, d.integer(8));
  const auto l = d.layout();
  ASSERT_TRUE(l.ok()) << l.status().message();
  ASSERT_TRUE(l->plans[1]);
  EXPECT_EQ(l->plans[1]->reads.slots, std::vector{d.n});
  EXPECT_TRUE(l->plans[1]->reads.values.empty());
}

// Each is right for some value of n, though not for 0 and not at the bound.
TEST(DataDependent, WhatANumberDecidesIsLeftToTheRun) {
  const auto accepted = [](std::string_view what, const auto& make) {
    Draft d;
    make(d);
    EXPECT_EQ(d.error(), "") << what;
  };
  accepted("a slice up to n",
           [](Draft& d) { d.add(d.slice(d.zero, d.n), d.tensor({3, 4}), {8, 4}); });
  accepted("a slice from n on",
           [](Draft& d) { d.add(d.slice(d.n, d.integer(8)), d.tensor({3, 4}), {8, 4}); });
  accepted("the same behind another node",
           [](Draft& d) { d.add(d.relu(d.slice(d.zero, d.n), {8, 4}), d.tensor({3, 4}), {8, 4}); });
  accepted("rows in steps of four", [](Draft& d) {
    const ValueId steps = d.value(LiveScalar{});
    const ValueId end = d.value(LiveScalar{});
    d.call("floordiv", {d.n, d.integer(4), steps});
    d.call("add", {steps, d.one, end});
    d.add(d.slice(d.zero, end), d.tensor({3, 4}), {8, 4});
  });
  accepted("n as a size", [](Draft& d) { d.view(d.table, {d.n, d.integer(-1)}, {8, 32}); });
  accepted("behind n as a size", [](Draft& d) {
    const ValueId v = d.view(d.table, {d.n, d.integer(-1)}, {8, 32});
    d.add(d.relu(v, {8, 32}), d.tensor({2, 16}), {8, 32});
  });
  accepted("n as a divisor", [](Draft& d) {
    const ValueId rows = d.value(LiveScalar{});
    d.call("floordiv", {d.integer(8), d.n, rows});
    d.add(d.slice(d.zero, rows), d.tensor({3, 4}), {8, 4});
  });
}

// What does not go together whatever n is.
TEST(DataDependent, OtherErrorsAreTheProgramsFault) {
  const auto refused = [](std::string_view text, const auto& make) {
    Draft d;
    make(d);
    const auto l = d.layout();
    ASSERT_FALSE(l.ok()) << "was accepted: " << text;
    EXPECT_EQ(l.status().code(), Code::kInvalidProgram);
    EXPECT_NE(l.status().message().find(text), std::string_view::npos) << l.status().message();
  };
  refused("a [2, 4] and b [3, 4] do not broadcast", [](Draft& d) {  // n to n + 2
    const ValueId end = d.value(LiveScalar{});
    d.call("add", {d.n, d.integer(2), end});
    const ValueId rows = d.tensor({2, 4});
    d.call("aten.slice_copy.Tensor", {d.table, d.zero, d.n, end, d.one, rows});
    d.add(d.relu(rows, {2, 4}), d.tensor({3, 4}), {2, 4});
  });
  refused("a [4, 4] and b [3, 4] do not broadcast", [](Draft& d) {  // a sum over n rows
    const ValueId rows = d.slice(d.zero, d.n);
    const ValueId turned = d.result("aten.t_copy.default", {rows}, {4, 8});
    const ValueId product = d.result("aten.mm.default", {turned, rows}, {4, 4});
    d.add(product, d.tensor({3, 4}), {4, 4});
  });
  refused("type: expected f32, got i32", [](Draft& d) {
    const ValueId other = d.value(graph::Tensor{.dtype = DType::kI32, .max = {32}});
    d.call("aten.view_copy.default", {d.slice(d.zero, d.n), d.integer(-1), other});
  });
}

// A bound of the file that is larger than what the rule gives for the bounds it reads: a recording
// made at that bound would hand it out as the result's size.
TEST(DataDependent, BoundsWithRoomToSpareAreNotTakenForSizes) {
  Draft d;
  const ValueId rows = d.slice(d.zero, d.n);
  const ValueId twice =
      d.result("aten.cat.default", {d.value(graph::ValueList{{rows, rows}}), d.zero}, {20, 4});
  d.g.outputs = {twice};
  graph::number_scalars(d.g);
  testing::LoadedGraph loaded(std::move(d.g), {});
  ASSERT_TRUE(loaded.status().ok()) << loaded.status().message();
  const std::vector<float> table(32, 1.0F);
  for (const float n : {8.0F, 3.0F, 8.0F}) {
    const Value inputs[] = {tensor<float>({1}, std::span(&n, 1)), tensor<float>({8, 4}, table)};
    const auto y = loaded.run(inputs);
    ASSERT_TRUE(y.ok()) << y.status().message();
    EXPECT_EQ(y->front().tensor()->dims, (Dims{2 * static_cast<int64_t>(n), 4}));
  }
}

TEST(DataDependent, EveryGpuNodeOfALanguageModelIsPlanned) {
  for (const char* name : {"llm/qwen2_like_fp32.pte", "llm/qwen3_like_q4.pte"}) {
    const auto program = program::Program::open(program::testing::fixture_path(name));
    ASSERT_TRUE(program.ok()) << program.status().message();
    Draft d;
    auto graph = graph::build_graph(*program, *program->find("forward"), ops::lookup());
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    d.g = std::move(*graph);
    const auto l = d.layout();
    ASSERT_TRUE(l.ok()) << l.status().message();
    size_t planned = 0;
    for (size_t i = 0; i < l->plans.size(); ++i) {
      EXPECT_EQ(l->plans[i].has_value(), l->place[i] == Place::kGpu) << i;
      planned += l->plans[i] && !l->plans[i]->dispatches.empty() ? 1 : 0;
    }
    EXPECT_GT(planned, 20U);
  }
}

}  // namespace
}  // namespace pteryx
