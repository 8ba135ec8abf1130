// Plans of operators built for more rows than they are run with: grids, params and result dims are
// those of an operator built for exactly that many.
// SPDX-License-Identifier: BSD-3-Clause

#include <gtest/gtest.h>

#include "pteryx/ops/schema.h"
#include "pteryx/ops/table.h"
#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

constexpr int64_t kBound = 300;
constexpr int64_t kWidth = 64;

// A graph of one node. Dims of kRows are `bound` rows in the file and `rows` in the run.
class OneNode {
 public:
  static constexpr int64_t kRows = -1;

  OneNode(int64_t bound, int64_t rows) : bound_(bound), rows_(rows) {}

  ValueId value(graph::Value v, const Dims& dims = {}) {
    g_.values.push_back(std::move(v));
    g_.labels.push_back(fmt::format("value {}", g_.values.size() - 1));
    live_.dims.push_back(dims);
    live_.scalars.emplace_back();
    return ValueId{static_cast<uint32_t>(g_.values.size() - 1)};
  }
  ValueId tensor(const Dims& dims, DType t = DType::kF32) {
    return value(graph::Tensor{.dtype = t, .max = with(dims, bound_)}, with(dims, rows_));
  }
  ValueId constant(const Dims& dims, DType t = DType::kF32) {
    const uint64_t bytes = static_cast<uint64_t>(numel(dims)) * size_bytes(t);
    const uint64_t place = next_ += 4096;
    return value(graph::Tensor{.dtype = t, .max = dims, .data = {{0, place, bytes}}}, dims);
  }
  ValueId state(const Dims& dims) {
    const ValueId id = constant(dims);
    std::get<graph::Tensor>(g_.values[graph::index(id)]).state = true;
    return id;
  }
  ValueId list(std::vector<ValueId> items) { return value(graph::ValueList{std::move(items)}); }
  ValueId position(int64_t v) {
    const ValueId id = value(graph::LiveScalar{});
    live_.scalars.back() = {graph::ScalarKind::kInt, v, static_cast<double>(v)};
    return id;
  }
  void call(std::string_view name, std::vector<ValueId> args) {
    const graph::OpInfo* info = lookup().find(name);
    ASSERT_NE(info, nullptr) << name;
    g_.nodes.push_back({.op = info, .spelling = info->name, .args = std::move(args)});
  }

  // Shapes the results, then plans.
  Result<std::vector<PlannedDispatch>> plan(const PlanContext& context) {
    graph::number_scalars(g_);
    const OpDef& def = op(*g_.nodes[0].op);
    PTERYX_TRY(check_schema(g_, g_.nodes[0], def));
    const Node node(g_, g_.nodes[0], def, live_);
    Shapes shapes(node, live_);
    PTERYX_TRY(def.shape(node, shapes));
    Plan p(context);
    PTERYX_TRY(def.plan(node, p));
    return std::move(p.dispatches);
  }
  Dims result() const { return Node(g_, g_.nodes[0], op(*g_.nodes[0].op), live_).out().dims; }

 private:
  static Dims with(Dims dims, int64_t rows) {
    for (int64_t& d : dims) d = d == kRows ? rows : d;
    return dims;
  }

  int64_t bound_, rows_;
  graph::Graph g_;
  Live live_;
  uint64_t next_ = 0;  // where constants are, each at a place of its own
};
constexpr int64_t kRows = OneNode::kRows;

struct Operator {
  const char* name;
  void (*build)(OneNode& g);
};
const Operator kOperators[] = {
    {"aten.add.Tensor",
     [](OneNode& g) {
       const ValueId a = g.tensor({1, kRows, kWidth});
       const ValueId b = g.tensor({1, kRows, kWidth});
       const ValueId one = g.value(int64_t{1});
       g.call("aten.add.Tensor", {a, b, one, g.tensor({1, kRows, kWidth})});
     }},
    {"aten.sigmoid.default",
     [](OneNode& g) {
       const ValueId x = g.tensor({1, kRows, kWidth});
       g.call("aten.sigmoid.default", {x, g.tensor({1, kRows, kWidth})});
     }},
    {"et_vk.rms_norm.default",
     [](OneNode& g) {
       const ValueId x = g.tensor({1, kRows, kWidth});
       const ValueId weight = g.constant({kWidth});
       const ValueId eps = g.value(1e-5);
       g.call("et_vk.rms_norm.default", {x, weight, eps, g.tensor({1, kRows, kWidth})});
     }},
    {"aten._softmax.default",
     [](OneNode& g) {
       const ValueId x = g.tensor({1, kRows, kWidth});
       const ValueId dim = g.value(int64_t{-1});
       const ValueId no = g.value(false);
       g.call("aten._softmax.default", {x, dim, no, g.tensor({1, kRows, kWidth})});
     }},
    {"et_vk.embedding_q4gsw.default",
     [](OneNode& g) {
       const ValueId codes = g.constant({50, kWidth / 2}, DType::kU8);
       const ValueId scales = g.constant({50, kWidth / 32});
       const ValueId group = g.value(int64_t{32});
       const ValueId ids = g.tensor({1, kRows}, DType::kI32);
       const ValueId low = g.value(false);
       g.call("et_vk.embedding_q4gsw.default",
              {codes, scales, group, ids, low, g.tensor({1, kRows, kWidth})});
     }},
    {"et_vk.apply_rotary_emb.default",
     [](OneNode& g) {
       const ValueId q = g.tensor({1, kRows, 4, 16});
       const ValueId k = g.tensor({1, kRows, 2, 16});
       const ValueId cos = g.tensor({kRows, 8});
       const ValueId sin = g.tensor({kRows, 8});
       const ValueId yq = g.tensor({1, kRows, 4, 16});
       const ValueId yk = g.tensor({1, kRows, 2, 16});
       g.call("et_vk.apply_rotary_emb.default", {q, k, cos, sin, g.list({yq, yk})});
     }},
    {"et_vk.apply_rotary_emb_hf.default",
     [](OneNode& g) {
       const ValueId q = g.tensor({1, 4, kRows, 16});
       const ValueId k = g.tensor({1, 2, kRows, 16});
       const ValueId cos = g.constant({1, 512, 8});
       const ValueId sin = g.constant({1, 512, 8});
       const ValueId start = g.position(7);
       const ValueId yq = g.tensor({1, 4, kRows, 16});
       const ValueId yk = g.tensor({1, 2, kRows, 16});
       g.call("et_vk.apply_rotary_emb_hf.default", {q, k, cos, sin, start, g.list({yq, yk})});
     }},
    {"sdpa_with_kv_cache.default",
     [](OneNode& g) {
       const ValueId q = g.tensor({1, kRows, 4, 16});
       const ValueId k = g.tensor({1, kRows, 2, 16});
       const ValueId v = g.tensor({1, kRows, 2, 16});
       const ValueId k_cache = g.state({1, 512, 2, 16});
       const ValueId v_cache = g.state({1, 512, 2, 16});
       const ValueId start = g.position(7);
       const ValueId one = g.value(int64_t{1});
       const ValueId none = g.value(graph::Null{});
       const ValueId zero = g.value(int64_t{0});
       const ValueId yes = g.value(true);
       g.call("sdpa_with_kv_cache.default", {q, k, v, k_cache, v_cache, start, one, none, zero, yes,
                                             none, g.tensor({1, kRows, 4, 16})});
     }},
    {"aten.linear.default",
     [](OneNode& g) {
       const ValueId x = g.tensor({1, kRows, kWidth});
       const ValueId weight = g.constant({96, kWidth});
       const ValueId none = g.value(graph::Null{});
       g.call("aten.linear.default", {x, weight, none, g.tensor({1, kRows, 96})});
     }},
    {"et_vk.linear_q4gsw.default",
     [](OneNode& g) {
       const ValueId x = g.tensor({1, kRows, kWidth});
       const ValueId weight = g.constant({96, kWidth / 2}, DType::kU8);
       const ValueId scales = g.constant({kWidth / 32, 96});
       const ValueId group = g.value(int64_t{32});
       const ValueId none = g.value(graph::Null{});
       g.call("et_vk.linear_q4gsw.default",
              {x, weight, scales, group, none, g.tensor({1, kRows, 96})});
     }},
    {"aten.permute_copy.default",
     [](OneNode& g) {
       const ValueId x = g.tensor({1, kRows, 4, 16});
       const ValueId order = g.value(graph::IntList{{0, 2, 1, 3}});
       g.call("aten.permute_copy.default", {x, order, g.tensor({1, 4, kRows, 16})});
     }},
    {"aten.cat.default",
     [](OneNode& g) {
       const ValueId a = g.tensor({1, kRows, kWidth});
       const ValueId b = g.tensor({1, kRows, kWidth});
       const ValueId dim = g.value(int64_t{-1});
       g.call("aten.cat.default", {g.list({a, b}), dim, g.tensor({1, kRows, 2 * kWidth})});
     }},
    {"aten.mean.dim",
     [](OneNode& g) {
       const ValueId x = g.tensor({kRows, kWidth});
       const ValueId dims = g.value(graph::IntList{{-1}});
       const ValueId yes = g.value(true);
       const ValueId none = g.value(graph::Null{});
       g.call("aten.mean.dim", {x, dims, yes, none, g.tensor({kRows, 1})});
     }},
};

uint64_t workgroups(const std::vector<PlannedDispatch>& dispatches) {
  uint64_t n = 0;
  for (const PlannedDispatch& d : dispatches) n += uint64_t{d.grid.x} * d.grid.y * d.grid.z;
  return n;
}

TEST(LiveSizes, PlansFollowTheRunAndNotTheBound) {
  const PlanContext context{.caps = emulated_caps()};
  for (const Operator& o : kOperators) {
    uint64_t at_one = 0;
    std::string label;
    for (const int64_t rows : {int64_t{1}, int64_t{8}, int64_t{64}, kBound}) {
      SCOPED_TRACE(fmt::format("{} with {} rows", o.name, rows));
      OneNode larger(kBound, rows);
      o.build(larger);
      OneNode exact(rows, rows);
      o.build(exact);
      const auto got = larger.plan(context);
      const auto want = exact.plan(context);
      ASSERT_TRUE(got.ok()) << got.status().message();
      ASSERT_TRUE(want.ok()) << want.status().message();
      EXPECT_EQ(larger.result(), exact.result());
      ASSERT_EQ(got->size(), want->size());
      for (size_t i = 0; i < got->size(); ++i) {
        const PlannedDispatch& a = (*got)[i];
        const PlannedDispatch& b = (*want)[i];
        EXPECT_EQ(std::tie(a.grid.x, a.grid.y, a.grid.z), std::tie(b.grid.x, b.grid.y, b.grid.z))
            << a.label;
        EXPECT_TRUE(a.params == b.params) << a.label;
        EXPECT_EQ(a.code, b.code);
      }
      // Workgroups of other kernels have other sizes.
      if (rows == 1) {
        at_one = workgroups(*got);
        label = got->back().label;
      }
      if (rows == kBound && got->back().label == label) {
        EXPECT_GT(workgroups(*got), at_one) << "the grid does not grow";
      }
    }
  }
}

}  // namespace
}  // namespace pteryx::ops::testing
