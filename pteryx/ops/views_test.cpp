// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "pteryx/ops/schema.h"
#include "pteryx/ops/table.h"
#include "pteryx/ops/testing/coords.h"
#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

TestTensor as(TestTensor x, const Dims& dims) {
  x.dims = dims;
  return x;
}

TEST(Views, KeepEveryElementOfEveryType) {
  struct {
    Dims from;
    std::vector<int64_t> size;
    Dims to;
  } const cases[] = {
      {{2, 3, 4}, {24}, {24}},   {{2, 3, 4}, {4, -1}, {4, 6}},
      {{}, {1, 1}, {1, 1}},      {{1}, {}, {}},
      {{7}, {-1}, {7}},          {{0, 3}, {3, 0}, {3, 0}},
      {{0, 3}, {-1, 3}, {0, 3}}, {{5, 1, 3}, {1, 1, 1, 15, 1, 1, 1, 1}, {1, 1, 1, 15, 1, 1, 1, 1}}};
  for (const DType t : every_type()) {
    for (const auto& c : cases) {
      const TestTensor x = some(t, c.from);
      for (const char* op : {"aten.view_copy.default", "aten::view_copy.out",
                             "aten._unsafe_view.default", "executorch_prim::et_view.default"}) {
        expect_op(Case(op).in(x).ints(c.size).out(t, c.to), {as(x, c.to)}, kExact);
      }
    }
  }
}

TEST(Views, CopiesTakeTheirOwnArguments) {
  const TestTensor x = some(DType::kF16, {3, 5});
  expect_op(Case("et_vk.prepack.default").in(x).out(DType::kF16, {3, 5}), {x}, kExact);
  expect_op(Case("aten.clone.default").in(x).none().out(DType::kF16, {3, 5}), {x}, kExact);
  expect_op(Case("aten::clone.out").in(x).integer(0).out(DType::kF16, {3, 5}), {x}, kExact);
  expect_op(Case("aten.alias_copy.default").in(x).out(DType::kF16, {3, 5}), {x}, kExact);
  expect_op(Case("dim_order_ops::_clone_dim_order.out")
                .in(x)
                .flag(false)
                .ints({1, 0})
                .out(DType::kF16, {3, 5}),
            {x}, kExact);
}

TEST(Views, SqueezeAndUnsqueeze) {
  const TestTensor x = some(DType::kI32, {1, 3, 1, 5});
  expect_op(Case("aten.squeeze_copy.dims").in(x).ints({0, -2}).out(DType::kI32, {3, 5}),
            {as(x, {3, 5})}, kExact);
  expect_op(Case("aten.squeeze_copy.dims").in(x).ints({1}).out(DType::kI32, {1, 3, 1, 5}), {x},
            kExact);
  expect_op(Case("aten::squeeze_copy.dim_out").in(x).integer(2).out(DType::kI32, {1, 3, 5}),
            {as(x, {1, 3, 5})}, kExact);
  expect_op(Case("aten.squeeze_copy.default").in(x).out(DType::kI32, {3, 5}), {as(x, {3, 5})},
            kExact);
  expect_op(Case("aten.unsqueeze_copy.default").in(x).integer(-1).out(DType::kI32, {1, 3, 1, 5, 1}),
            {as(x, {1, 3, 1, 5, 1})}, kExact);
  expect_op(Case("aten.unsqueeze_copy.default")
                .in(some(DType::kF32, {}))
                .integer(0)
                .out(DType::kF32, {1}),
            {as(some(DType::kF32, {}), {1})}, kExact);
}

TEST(Views, RefuseWhatDoesNotFit) {
  const TestTensor x = some(DType::kF32, {2, 3});
  const auto view = [&](std::vector<int64_t> size, const Dims& y) {
    return Case("aten.view_copy.default").in(x).ints(std::move(size)).out(DType::kF32, y);
  };
  expect_error(view({4, -1}, {4, 1}), "size: the -1 of [4, -1] cannot be inferred from 6 elements");
  expect_error(view({-1, -1}, {2, 3}), "size: expected sizes and at most one -1, got [-1, -1]");
  expect_error(view({int64_t{1} << 40, int64_t{1} << 40}, {2, 3}), "is too large");
  expect_error(view({7, 9}, {7, 9}),
               "x [2, 3] does not fit value 2 (at most [9, 11]): no single dim shrinks");
  expect_error(Case("aten.clone.default").in(x).none().out(DType::kF16, {2, 3}),
               "y (value 2) type: expected f32, got f16");
  expect_error(Case("aten.squeeze_copy.dims").in(x).ints({0}).out(DType::kF32, {3}),
               "cannot give rank 1");
  expect_error(Case("aten.unsqueeze_copy.default").in(x).integer(3).out(DType::kF32, {2, 3, 1}),
               "dim: expected -3 to 2, got 3");
  expect_error(Case("aten.unsqueeze_copy.default")
                   .in(some(DType::kF32, {1, 1, 1, 1, 1, 1, 1, 1}))
                   .integer(0)
                   .out(DType::kF32, {1}),
               "a result of rank 9");
}

// The shape a view gets when the file's bounds are larger than this run.
std::string live_dims(std::string_view name, const Dims& x_max, const Dims& x, graph::Value size,
                      const Dims& y_max, const std::vector<int64_t>& scalars = {}) {
  graph::Graph g;
  Live live;
  const auto add = [&](graph::Value v, const Dims& dims) {
    g.values.push_back(std::move(v));
    g.labels.push_back(fmt::format("value {}", g.values.size() - 1));
    live.dims.push_back(dims);
    live.scalars.emplace_back();
    return ValueId{static_cast<uint32_t>(g.values.size() - 1)};
  };
  graph::Node node;
  node.op = lookup().find(name);
  for (const int64_t v : scalars) {  // values 0, 1, ...
    add(graph::LiveScalar{}, {});
    live.scalars.back() = {graph::ScalarKind::kInt, v, static_cast<double>(v)};
  }
  node.args.push_back(
      add(graph::Tensor{.dtype = DType::kF32, .max = x_max, .data = {}, .dim_order = {}}, x));
  if (!std::holds_alternative<graph::Null>(size)) node.args.push_back(add(std::move(size), {}));
  node.args.push_back(
      add(graph::Tensor{.dtype = DType::kF32, .max = y_max, .data = {}, .dim_order = {}}, y_max));
  g.nodes.push_back(node);
  Live next = live;
  const Node n(g, g.nodes[0], op(*node.op), live);
  Shapes shapes(n, next);
  if (const Status s = check_schema(g, g.nodes[0], n.def()); !s.ok())
    return std::string(s.message());
  if (const Status s = n.def().shape(n, shapes); !s.ok()) return std::string(s.message());
  return to_string(next.dims.back());
}

graph::IntList list(std::vector<int64_t> items) { return {std::move(items)}; }

TEST(Views, StaleSizeListsFollowTheLiveInput) {
  const char* view = "aten.view_copy.default";
  // The only dim of x below its bound says which dim of the result shrinks.
  EXPECT_EQ(live_dims(view, {1, 128, 512}, {1, 7, 512}, list({128, 512}), {128, 512}), "[7, 512]");
  EXPECT_EQ(live_dims(view, {1, 128, 512}, {1, 7, 512}, list({128, 8, 64}), {128, 8, 64}),
            "[7, 8, 64]");
  EXPECT_EQ(live_dims(view, {8, 16, 64}, {8, 5, 64}, list({8, 1024}), {8, 1024}), "[8, 320]");
  EXPECT_EQ(live_dims(view, {16, 16}, {16, 4}, list({16, 16}), {16, 16}), "[16, 4]");
  // Otherwise the count must leave one choice.
  EXPECT_EQ(live_dims(view, {6, 4}, {3, 2}, list({24}), {24}), "[6]");
  EXPECT_NE(
      live_dims(view, {4, 4}, {2, 2}, list({4, 4}), {4, 4}).find("more than one dim could shrink"),
      std::string::npos);
  // Lists that are not stale are evaluated.
  EXPECT_EQ(live_dims(view, {4, 6}, {4, 3}, list({3, -1}), {3, 8}), "[3, 4]");
  const graph::ValueList symbolic{{ValueId{0}, ValueId{1}}};
  EXPECT_EQ(live_dims(view, {4, 6}, {2, 6}, symbolic, {4, 6}, {3, 4}), "[3, 4]");
  EXPECT_NE(live_dims(view, {4, 6}, {2, 6}, symbolic, {4, 6}, {3, 5})
                .find("size: [3, 5] has 15 elements, x [2, 6] has 12"),
            std::string::npos);
}

TEST(Views, SharedBytesTakeTheBoundOfTheirTarget) {
  EXPECT_EQ(live_dims("pteryx.view", {2, 3, 4}, {2, 3, 4}, graph::Null{}, {6, 4}), "[6, 4]");
  EXPECT_EQ(live_dims("pteryx.view", {1, 128, 64}, {1, 5, 64}, graph::Null{}, {128, 64}),
            "[5, 64]");
}

TEST(Views, SqueezeKeepsADimThatIsOneOnlyNow) {
  const char* squeeze = "aten.squeeze_copy.dims";
  EXPECT_EQ(live_dims(squeeze, {1, 9, 4}, {1, 1, 4}, list({0, 1}), {9, 4}), "[1, 4]");
  EXPECT_EQ(live_dims(squeeze, {1, 1, 4}, {1, 1, 4}, list({0, 1}), {4}), "[4]");
}

}  // namespace
}  // namespace pteryx::ops::testing
