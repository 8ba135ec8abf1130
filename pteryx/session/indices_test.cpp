// Indices outside their tensor: those of an input are refused before anything runs, those that the
// program computes are reported with the outputs.
// SPDX-License-Identifier: BSD-3-Clause
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pteryx/session/testing/graphs.h"

namespace pteryx {
namespace {

using graph::Tensor;
using graph::ValueId;
using testing::GraphDraft;
using testing::LoadedGraph;

gpu::Device& device() { return *gpu::shared_device(); }

// An operator on x [5, 3], or another table, with an index of two elements.
struct Row {
  const char* op;
  const char* index;  // its name
  bool from_end;
  const char* of;
  std::function<ValueId(GraphDraft&, const char* op, ValueId x, ValueId index)> call;
};

ValueId scatter(GraphDraft& d, const char* op, ValueId x, ValueId index) {
  const ValueId column = d.value(Tensor{.dtype = DType::kI32, .max = {2, 1}});
  d.call("aten.unsqueeze_copy.default", {index, d.value(int64_t{1}), column});
  const ValueId y = d.tensor({5, 3});
  d.call(op, {x, d.value(int64_t{0}), column, d.tensor({2, 1}), y});
  d.g.inputs.push_back(d.g.nodes.back().args[3]);
  return y;
}
ValueId put(GraphDraft& d, const char* op, ValueId x, ValueId index) {
  const ValueId y = d.tensor({5, 3});
  const ValueId values = d.tensor({2, 3});
  d.g.inputs.push_back(values);
  d.call(op, {x, d.value(graph::ValueList{{index}}), values, d.value(false), y});
  return y;
}

const Row kRows[] = {
    {"aten.embedding.default", "indices", false, "weight",
     [](GraphDraft& d, const char* op, ValueId x, ValueId index) {
       const ValueId y = d.tensor({2, 3});
       d.call(op, {x, index, d.value(int64_t{-1}), d.value(false), d.value(false), y});
       return y;
     }},
    {"aten.index_select.default", "index", false, "x",
     [](GraphDraft& d, const char* op, ValueId x, ValueId index) {
       const ValueId y = d.tensor({2, 3});
       d.call(op, {x, d.value(int64_t{0}), index, y});
       return y;
     }},
    {"aten.gather.default", "index", false, "x",
     [](GraphDraft& d, const char* op, ValueId x, ValueId index) {
       const ValueId column = d.value(Tensor{.dtype = DType::kI32, .max = {2, 1}});
       d.call("aten.unsqueeze_copy.default", {index, d.value(int64_t{1}), column});
       const ValueId y = d.tensor({2, 1});
       d.call(op, {x, d.value(int64_t{0}), column, d.value(false), y});
       return y;
     }},
    {"aten.index.Tensor", "indices", true, "x",
     [](GraphDraft& d, const char* op, ValueId x, ValueId index) {
       const ValueId y = d.tensor({2, 3});
       d.call(op, {x, d.value(graph::ValueList{{index}}), y});
       return y;
     }},
    {"aten.scatter.src", "index", false, "x", scatter},
    {"aten.scatter_add.default", "index", false, "x", scatter},
    {"aten.index_copy.default", "index", false, "x",
     [](GraphDraft& d, const char* op, ValueId x, ValueId index) {
       const ValueId y = d.tensor({5, 3});
       const ValueId values = d.tensor({2, 3});
       d.g.inputs.push_back(values);
       d.call(op, {x, d.value(int64_t{0}), index, values, y});
       return y;
     }},
    {"aten.index_put.default", "indices", true, "x", put},
    {"aten._embedding_bag_forward_only.default", "indices", false, "weight",
     [](GraphDraft& d, const char* op, ValueId x, ValueId index) {
       const auto ints = [&](int64_t n) {
         return d.value(Tensor{.dtype = DType::kI32, .max = {n}});
       };
       const ValueId offsets = ints(1);
       d.g.inputs.push_back(offsets);
       const ValueId y = d.tensor({1, 3});
       const ValueId none = d.value(graph::Null{});
       d.call(op, {x, index, offsets, d.value(false), d.value(int64_t{1}), d.value(false), none,
                   d.value(false), d.value(int64_t{-1}),
                   d.value(graph::ValueList{{y, ints(2), ints(1), ints(1)}})});
       return y;
     }},
};

enum class From : uint8_t {
  kInput,     // as it is given
  kCasts,     // i64, through a view, a copy and a cast
  kComputed,  // plus another input
};

// x, the index and what is added to it, then what else the operator takes.
graph::Graph graph_of(const Row& row, From from) {
  GraphDraft d;
  d.g.method = "forward";
  const ValueId x = d.tensor({5, 3});
  const auto ints = [&](const Dims& dims) {
    return d.value(Tensor{.dtype = DType::kI32, .max = dims});
  };
  ValueId index =
      from == From::kCasts ? d.value(Tensor{.dtype = DType::kI64, .max = {1, 2}}) : ints({2});
  const ValueId shift = ints({2});
  d.g.inputs = {x, index, shift};
  if (from == From::kCasts) {
    const ValueId copied = d.value(Tensor{.dtype = DType::kI64, .max = {1, 2}});
    const ValueId narrow = ints({1, 2});
    const ValueId flat = ints({2});
    d.call("aten.clone.default", {index, d.value(graph::Null{}), copied});
    std::vector<ValueId> cast = {copied};
    for (int i = 0; i < 6; ++i) cast.push_back(d.value(graph::Null{}));
    cast.push_back(narrow);
    d.call("aten._to_copy.default", cast);
    d.call("aten.view_copy.default", {narrow, d.value(graph::IntList{{2}}), flat});
    index = flat;
  }
  if (from == From::kComputed) {
    const ValueId sum = ints({2});
    d.call("aten.add.Tensor", {index, shift, d.value(int64_t{1}), sum});
    index = sum;
  }
  d.g.outputs = {row.call(d, row.op, x, index)};
  return std::move(d.g);
}

// Runs of such a graph.
struct Calls {
  const graph::Graph& g;
  LoadedGraph& loaded;
  std::vector<float> floats = std::vector<float>(32, 1.0F);

  Result<std::span<const Value>> run(std::vector<int64_t> index, std::vector<int32_t> shift) {
    const std::vector<int32_t> narrow(index.begin(), index.end());
    const std::vector<int32_t> zeros(2);
    std::vector<Value> inputs;
    for (size_t i = 0; i < g.inputs.size(); ++i) {
      const Tensor& t = *g.tensor(g.inputs[i]);
      const auto n = static_cast<size_t>(numel(t.max));
      const std::vector<int32_t>& given = i == 1 ? narrow : (i == 2 ? shift : zeros);
      if (t.dtype == DType::kF32) {
        inputs.emplace_back(tensor<float>(t.max, std::span<const float>(floats).first(n)));
      } else if (t.dtype == DType::kI64) {
        inputs.emplace_back(tensor<int64_t>(t.max, std::span<const int64_t>(index)));
      } else {
        inputs.emplace_back(tensor<int32_t>(t.max, std::span<const int32_t>(given).first(n)));
      }
    }
    return loaded.run(inputs);
  }
};

void expect_refused(const Result<std::span<const Value>>& got,
                    const std::vector<std::string>& texts) {
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.status().code(), Code::kInvalidArgument);
  for (const std::string& text : texts) {
    EXPECT_NE(got.status().message().find(text), std::string::npos)
        << text << " in " << got.status().message();
  }
}

TEST(Indices, OfAnInputAreRefusedBeforeAnythingRuns) {
  for (const Row& row : kRows) {
    for (const From from : {From::kInput, From::kCasts}) {
      for (const auto& on : gpu::gpu_and_cpu()) {
        SCOPED_TRACE(fmt::format("{} {} {}", row.op, from == From::kCasts, on->caps().adapter));
        const graph::Graph g = graph_of(row, from);
        LoadedGraph loaded(graph_of(row, from), {}, "", on);
        ASSERT_TRUE(loaded.status().ok()) << loaded.status().message();
        EXPECT_EQ(loaded.method().layout().fault_slots, 0U);
        Calls calls{g, loaded};
        const int64_t low = row.from_end ? -5 : 0;
        ASSERT_TRUE(calls.run({low, 4}, {0, 0}).ok());
        for (const int64_t bad : {low - 1, int64_t{5}}) {
          const gpu::Counters before = on->counters();
          expect_refused(calls.run({0, bad}, {0, 0}),
                         {fmt::format("input 1 of 'forward': element 1 is {}, outside [{}, 5), dim "
                                      "0 of {} (value 0) in {}",
                                      bad, low, row.of, row.op)});
          EXPECT_EQ(on->counters().submits, before.submits);
          EXPECT_EQ(on->counters().writes, before.writes);
          EXPECT_TRUE(calls.run({low, 4}, {0, 0}).ok());
        }
      }
    }
  }
}

TEST(Indices, ThatAreComputedAreReportedWithTheOutputs) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.op);
    const graph::Graph g = graph_of(row, From::kComputed);
    LoadedGraph loaded(graph_of(row, From::kComputed), {});
    ASSERT_TRUE(loaded.status().ok()) << loaded.status().message();
    ASSERT_EQ(loaded.method().layout().fault_slots, 1U);
    ASSERT_TRUE(loaded.method().layout().one_stretch);
    Calls calls{g, loaded};
    const int64_t low = row.from_end ? -5 : 0;
    ASSERT_TRUE(calls.run({0, 3}, {0, 1}).ok());
    for (const int64_t bad : {low - 1, int64_t{5}, int64_t{1000}}) {
      const gpu::Counters start = device().counters();
      ASSERT_TRUE(calls.run({low, 2}, {0, 2}).ok());
      const gpu::Counters good = device().counters();
      expect_refused(calls.run({0, bad - 1}, {0, 1}),
                     {row.op, fmt::format("{} (value ", row.index),
                      fmt::format("): element 1 is {}, outside [{}, 5), dim 0 of {} (value 0)", bad,
                                  low, row.of)});
      const gpu::Counters end = device().counters();
      // In one submit and one read, of the output and a slot; afterwards the slot is zero again.
      EXPECT_EQ(good.submits - start.submits, 1U);
      EXPECT_EQ(good.writes - start.writes, 1U);
      EXPECT_EQ(good.reads - start.reads, 1U);
      EXPECT_LE(good.read_bytes - start.read_bytes, 5U * 3 * 4 + 4 + 16);
      EXPECT_EQ(end.submits - good.submits, 1U);
      EXPECT_EQ(end.writes - good.writes, 2U);
      EXPECT_EQ(end.reads - good.reads, 1U);
    }
    EXPECT_TRUE(calls.run({low, 2}, {0, 2}).ok());
  }
}

TEST(Indices, ThatAreComputedAreRefusedOnTheCpuInTheSameWords) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.op);
    const graph::Graph g = graph_of(row, From::kComputed);
    std::string said;
    for (const auto& on : gpu::gpu_and_cpu()) {
      LoadedGraph loaded(graph_of(row, From::kComputed), {}, "", on);
      ASSERT_TRUE(loaded.status().ok()) << loaded.status().message();
      Calls calls{g, loaded};
      const auto got = calls.run({0, 7}, {0, -1});
      ASSERT_FALSE(got.ok());
      if (on->caps().cpu) {
        EXPECT_EQ(got.status().message(), said);
      }
      said = got.status().message();
    }
  }
}

// The bound of an input that is smaller than it may be is its size in this run.
TEST(Indices, AreBoundedByTheLiveSize) {
  GraphDraft d;
  d.g.method = "forward";
  const ValueId x = d.value(Tensor{.dtype = DType::kF32, .max = {8, 2}, .dynamic = true});
  const ValueId twice = d.tensor({8, 2});
  const ValueId index = d.value(Tensor{.dtype = DType::kI64, .max = {2}});
  const ValueId y = d.tensor({2, 2});
  d.call("aten.add.Tensor", {x, x, d.value(int64_t{1}), twice});
  d.call("aten.index.Tensor", {twice, d.value(graph::ValueList{{index}}), y});
  d.g.inputs = {x, index};
  d.g.outputs = {y};
  LoadedGraph loaded(std::move(d.g), {});
  ASSERT_TRUE(loaded.status().ok()) << loaded.status().message();
  const std::vector<float> values(16, 1.0F);
  const auto run = [&](int64_t rows, int64_t last) {
    const std::vector<int64_t> ids = {0, last};
    const Value inputs[] = {
        tensor<float>({rows, 2}, std::span(values).first(static_cast<size_t>(rows) * 2)),
        tensor<int64_t>({2}, ids)};
    return loaded.run(inputs);
  };
  EXPECT_TRUE(run(8, 7).ok());
  EXPECT_TRUE(run(5, 4).ok());
  EXPECT_TRUE(run(5, -5).ok());
  const gpu::Counters before = device().counters();
  for (const int64_t bad : {int64_t{5}, int64_t{7}, int64_t{9}, int64_t{-6}}) {
    expect_refused(run(5, bad),
                   {fmt::format("input 1 of 'forward': element 1 is {}, outside [-5, 5), dim 0 of "
                                "x (value 1) in aten.index.Tensor",
                                bad)});
  }
  EXPECT_EQ(device().counters().submits, before.submits);
}

}  // namespace
}  // namespace pteryx
