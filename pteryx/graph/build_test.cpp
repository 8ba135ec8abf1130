// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/graph/build.h"

#include <map>

#include <gtest/gtest.h>

#include "pteryx/program/testing/build.h"

namespace pteryx::graph {
namespace {

using program::KernelCall;
using program::MethodRecord;
using program::TensorRecord;

// Knows a handful of operators.
class Ops final : public OpLookup {
 public:
  Ops() {
    for (const char* name :
         {"aten::add.out", "aten::relu.out", "aten::topk.values", "aten::view_copy.out", "sym",
          "pteryx.view", "pteryx.copy", "pteryx.item", "pteryx.move"}) {
      infos_[name].name = name;
    }
    infos_["aten::full.out"] = {.name = "aten.full.default", .factory = kFactory};
    infos_["aten::copy_"] = {.name = "aten::copy_", .mutated = 1};
  }
  const OpInfo* find(std::string_view spelling) const override {
    const auto it = infos_.find(spelling);
    return it == infos_.end() ? nullptr : &it->second;
  }

 private:
  static constexpr uint8_t kFactory[] = {2, 3, 4, 5};
  std::map<std::string, OpInfo, std::less<>> infos_;
};

// A method being put together by hand.
struct Draft {
  MethodRecord m;
  Draft() {
    m.name = "forward";
    m.buffer_sizes = {0, 4096};
  }
  uint32_t value(program::ValueRecord v) {
    m.values.push_back(std::move(v));
    return static_cast<uint32_t>(m.values.size() - 1);
  }
  // A planned tensor at a byte offset of a buffer; offset < 0: not planned.
  uint32_t tensor(const Dims& sizes, int64_t offset, uint32_t buffer = 1) {
    TensorRecord t;
    t.dtype = DType::kF32;
    t.sizes = sizes;
    for (size_t i = 0; i < sizes.rank(); ++i) t.dim_order.push_back(static_cast<uint8_t>(i));
    if (offset >= 0) t.placement = program::Placement{buffer, static_cast<uint64_t>(offset)};
    return value(std::move(t));
  }
  void call(const std::string& op, std::vector<uint32_t> args) {
    m.operators.push_back(op);
    m.instructions.emplace_back(
        KernelCall{static_cast<uint32_t>(m.operators.size() - 1), std::move(args)});
  }
  Result<Graph> build() const {
    static const Ops ops;
    return build_graph(program::Program(), m, ops);
  }
};

std::vector<uint32_t> args_of(const Node& n) {
  std::vector<uint32_t> ids;
  for (const ValueId id : n.args) ids.push_back(index(id));
  return ids;
}

TEST(Build, ARepeatedResultStandsOnce) {
  Draft d;
  const uint32_t a = d.tensor({4}, 0);
  const uint32_t b = d.tensor({4}, 16);
  const uint32_t alpha = d.value(int64_t{1});
  const uint32_t y = d.tensor({4}, 32);
  d.m.inputs = {a, b};
  d.m.outputs = {y};
  d.call("aten::add.out", {a, b, alpha, y, y});
  const auto g = d.build();
  ASSERT_TRUE(g.ok()) << g.status().message();
  ASSERT_EQ(g->nodes.size(), 1U);
  EXPECT_EQ(args_of(g->nodes[0]), (std::vector<uint32_t>{a, b, alpha, y}));
}

TEST(Build, SeveralResultsStandAsOneList) {
  Draft d;
  const uint32_t x = d.tensor({4}, 0);
  const uint32_t k = d.value(int64_t{2});
  const uint32_t values = d.tensor({2}, 16);
  const uint32_t indices = d.tensor({2}, 32);
  const uint32_t list = d.value(program::TensorListRecord{{values, indices}});
  d.m.inputs = {x};
  d.m.outputs = {values};
  d.call("aten::topk.values", {x, k, values, indices, list});
  const auto g = d.build();
  ASSERT_TRUE(g.ok()) << g.status().message();
  EXPECT_EQ(args_of(g->nodes[0]), (std::vector<uint32_t>{x, k, list}));
}

TEST(Build, OptionsThatOutSpellingsLeaveOutAreNone) {
  Draft d;
  const uint32_t size = d.value(program::IntListRecord{{}});
  const uint32_t fill = d.value(1.5);
  const uint32_t y = d.tensor({}, 0);
  d.m.outputs = {y};
  d.call("aten::full.out", {size, fill, y, y});
  const auto g = d.build();
  ASSERT_TRUE(g.ok()) << g.status().message();
  ASSERT_EQ(g->nodes[0].args.size(), 7U);
  for (size_t i = 2; i < 6; ++i)
    EXPECT_TRUE(std::holds_alternative<Null>((*g)[g->nodes[0].args[i]]));
  EXPECT_EQ(index(g->nodes[0].args[6]), y);
}

TEST(Build, AViewLeftOutByTheExporterIsFoundByItsAddress) {
  Draft d;
  const uint32_t x = d.tensor({2, 3}, 0);
  const uint32_t y = d.tensor({2, 3}, 64);
  const uint32_t flat = d.tensor({6}, 64);  // the same bytes; no instruction writes it
  const uint32_t z = d.tensor({6}, 128);
  d.m.inputs = {x};
  d.m.outputs = {z};
  d.call("aten::relu.out", {x, y, y});
  d.call("aten::relu.out", {flat, z, z});
  const auto g = d.build();
  ASSERT_TRUE(g.ok()) << g.status().message();
  ASSERT_EQ(g->nodes.size(), 3U);
  EXPECT_EQ(g->nodes[1].op->name, kViewOp);
  EXPECT_EQ(args_of(g->nodes[1]), (std::vector<uint32_t>{y, flat}));
}

TEST(Build, ArgumentsBehindTheLastFlagHaveNone) {
  const OpInfo all{
      .name = "f", .mutated = ~uint64_t{0}, .index = ~uint64_t{0}, .cache = ~uint64_t{0}};
  EXPECT_TRUE(all.mutates(63) && all.narrows(63) && all.takes_cache(63));
  EXPECT_FALSE(all.mutates(64) || all.narrows(64) || all.takes_cache(64));
}

// A method that adds its input to a buffer, and one that only writes the buffer.
struct TwoMethods {
  Draft reads, writes;
  uint32_t read = 0;
  uint32_t written = 0;

  explicit TwoMethods(uint32_t memory) {
    for (Draft* d : {&reads, &writes}) {
      const uint32_t x = d->tensor({2, 3}, 0);
      d->m.buffer_sizes.push_back(256);
      d->m.inputs = {x};
      (d == &reads ? read : written) = d->tensor({2, 3}, 64, memory);
      const uint32_t y = d->tensor({2, 3}, 128);
      d->m.outputs = {y};
      if (d == &reads) d->call("aten::add.out", {x, read, y, y});
      if (d == &writes) d->call("aten::relu.out", {x, written, written});
      if (d == &writes) d->call("aten::relu.out", {x, y, y});
    }
  }
  std::vector<Graph> build() const {
    static const Ops ops;
    const MethodRecord* methods[] = {&writes.m, &reads.m};
    std::vector<Graph> graphs;
    for (auto& g : build_graphs(program::Program(), methods, ops)) {
      EXPECT_TRUE(g.ok()) << g.status().message();
      if (g.ok()) graphs.push_back(std::move(g).value());
    }
    return graphs;
  }
};

TEST(Build, WhatOneMethodReadsIsStateOfThoseThatWriteIt) {
  const TwoMethods two(2);
  const std::vector<Graph> graphs = two.build();
  ASSERT_EQ(graphs.size(), 2U);
  for (const Tensor* t :
       {graphs[0].tensor(ValueId{two.written}), graphs[1].tensor(ValueId{two.read})}) {
    EXPECT_TRUE(t->state);
    EXPECT_EQ(t->shared, (SharedPlace{.memory = 2, .offset = 64}));
  }
}

TEST(Build, AMethodsOwnMemoryIsNotShared) {
  const TwoMethods two(1);
  const std::vector<Graph> graphs = two.build();
  ASSERT_EQ(graphs.size(), 2U);
  EXPECT_FALSE(graphs[0].tensor(ValueId{two.written})->state);
  EXPECT_TRUE(graphs[1].tensor(ValueId{two.read})->state);
  EXPECT_FALSE(graphs[1].tensor(ValueId{two.read})->shared);
}

TEST(Build, MemoriesOfDifferentSizesAreNotShared) {
  TwoMethods two(2);
  two.writes.m.buffer_sizes.back() = 512;
  const std::vector<Graph> graphs = two.build();
  ASSERT_EQ(graphs.size(), 2U);
  EXPECT_FALSE(graphs[0].tensor(ValueId{two.written})->state);
  EXPECT_FALSE(graphs[1].tensor(ValueId{two.read})->shared);
}

TEST(Build, AnAddressHeldByAnotherSizeIsAnError) {
  Draft d;
  const uint32_t x = d.tensor({2, 3}, 0);
  const uint32_t y = d.tensor({2, 3}, 64);
  const uint32_t other = d.tensor({4}, 64);
  const uint32_t z = d.tensor({4}, 128);
  d.m.inputs = {x};
  d.m.outputs = {z};
  d.call("aten::relu.out", {x, y, y});
  d.call("aten::relu.out", {other, z, z});
  const auto g = d.build();
  ASSERT_FALSE(g.ok());
  EXPECT_NE(
      g.status().message().find("value 2 (f32 [4]) is read at the address of value 1 (f32 [2, 3])"),
      std::string_view::npos)
      << g.status().message();
}

TEST(Build, ABufferReadBeforeItIsWrittenIsState) {
  Draft d;
  const uint32_t x = d.tensor({4}, 0);
  const uint32_t buffer = d.tensor({4}, 16);
  const uint32_t alpha = d.value(int64_t{1});
  const uint32_t sum = d.tensor({4}, 32);
  const uint32_t blocking = d.value(false);
  d.m.inputs = {x};
  d.m.outputs = {sum};
  d.call("aten::add.out", {buffer, x, alpha, sum, sum});
  d.call("aten::copy_", {buffer, sum, blocking, buffer});
  const auto g = d.build();
  ASSERT_TRUE(g.ok()) << g.status().message();
  EXPECT_TRUE(g->tensor(ValueId{buffer})->state);
  EXPECT_FALSE(g->tensor(ValueId{sum})->state);
}

TEST(Build, ListsAreLiteralUnlessAnItemIsComputed) {
  Draft d;
  const uint32_t x = d.tensor({2, 3}, 0);
  const uint32_t two = d.value(int64_t{2});
  const uint32_t computed = d.value(int64_t{0});
  const uint32_t literal = d.value(program::IntListRecord{{two, two}});
  const uint32_t live = d.value(program::IntListRecord{{two, computed}});
  const uint32_t y = d.tensor({2, 3}, 64);
  d.m.inputs = {x};
  d.m.outputs = {y};
  d.call("sym", {x, two, computed});
  d.call("aten::view_copy.out", {x, live, y, y});
  const auto g = d.build();
  ASSERT_TRUE(g.ok()) << g.status().message();
  EXPECT_EQ(std::get<IntList>((*g)[ValueId{literal}]).items, (std::vector<int64_t>{2, 2}));
  EXPECT_TRUE(std::holds_alternative<ValueList>((*g)[ValueId{live}]));
  EXPECT_TRUE(std::holds_alternative<LiveScalar>((*g)[ValueId{computed}]));
}

TEST(Build, AValueMustBeWrittenBeforeItIsRead) {
  Draft d;
  const uint32_t x = d.tensor({4}, -1);
  const uint32_t y = d.tensor({4}, -1);
  const uint32_t z = d.tensor({4}, -1);
  d.m.inputs = {x};
  d.m.outputs = {z};
  d.call("aten::relu.out", {y, z, z});
  d.call("aten::relu.out", {x, y, y});
  const auto g = d.build();
  ASSERT_FALSE(g.ok());
  EXPECT_EQ(g.status().message(),
            "aten::relu.out (instruction 0): argument 0 (value 1) is used before it is written");
}

TEST(Build, JumpsPointAtNodes) {
  Draft d;
  const uint32_t x = d.tensor({4}, -1);
  const uint32_t condition = d.value(true);
  const uint32_t y = d.tensor({4}, -1);
  d.m.inputs = {x};
  d.m.outputs = {y};
  d.m.instructions.emplace_back(program::JumpFalseCall{condition, 2});
  d.call("aten::relu.out", {x, y, y});
  d.m.instructions.emplace_back(program::MoveCall{x, y});
  const auto g = d.build();
  ASSERT_TRUE(g.ok()) << g.status().message();
  EXPECT_TRUE(g->has_jumps);
  EXPECT_EQ(g->nodes[0].kind, Node::Kind::kJumpFalse);
  EXPECT_EQ(g->nodes[0].target, 2U);
  EXPECT_EQ(g->nodes[2].op->name, kCopyOp);
}

TEST(Build, OtherBackendsAreNamed) {
  Draft d;
  d.m.delegates.push_back({.id = "XnnpackBackend", .blob = {}, .specs = {}});
  const auto g = d.build();
  ASSERT_FALSE(g.ok());
  EXPECT_EQ(g.status().code(), Code::kUnsupported);
  EXPECT_NE(g.status().message().find("'XnnpackBackend'"), std::string_view::npos);
}

// Each call is inlined, so many calls of one large delegate would make a graph that grows with the
// square of the file.
TEST(Build, ADelegateMayNotBeCalledWithoutEnd) {
  program::testing::BlobBuilder blob;
  for (int i = 0; i < 1000; ++i) blob.add_int(i);
  const int32_t x = blob.add_tensor();
  const int32_t y = blob.add_tensor();
  blob.inputs = {static_cast<uint32_t>(x)};
  blob.outputs = {static_cast<uint32_t>(y)};
  blob.add_call("aten::relu.out", {x, y});
  const std::string content = blob.finish();
  const auto build = [&](int calls) {
    program::testing::ProgramBuilder p;
    const int32_t in = p.add_tensor();
    const int32_t out = p.add_tensor();
    p.inputs = {in};
    p.outputs = {out};
    const int32_t delegate = p.add_delegate("VulkanBackend", content);
    for (int i = 0; i < calls; ++i) p.add_delegate_call(delegate, {in, out});
    const auto file = p.finish();
    auto program = program::Program::parse(file);
    if (!program.ok()) return std::move(program).status();
    static const Ops ops;
    auto g = build_graph(*program, program->methods()[0], ops);
    return g.ok() ? Status() : std::move(g).status();
  };
  EXPECT_TRUE(build(15).ok()) << build(15).message();
  const Status s = build(100);
  EXPECT_EQ(s.code(), Code::kInvalidProgram);
  EXPECT_NE(s.message().find("delegate 0 is called too often"), std::string_view::npos)
      << s.message();
}

TEST(Build, IntsTravelBetweenDelegates) {
  const auto program =
      program::Program::open(std::string(PTERYX_TEST_DATA) + "/fixtures/ops/mixed_dyn_matmul.pte");
  ASSERT_TRUE(program.ok()) << program.status().message();
  static const Ops ops;
  const auto g = build_graph(*program, *program->find("forward"), ops);
  ASSERT_TRUE(g.ok()) << g.status().message();
  // Value 1 of the method is written by the first delegate's sym_size and read by the others'
  // views.
  EXPECT_TRUE(std::holds_alternative<LiveScalar>((*g)[ValueId{1}]));
  size_t readers = 0;
  for (const Value& v : g->values) {
    const auto* list = std::get_if<ValueList>(&v);
    if (list == nullptr) continue;
    for (const ValueId id : list->items) readers += id == ValueId{1} ? 1 : 0;
  }
  EXPECT_GE(readers, 8U);
}

}  // namespace
}  // namespace pteryx::graph
