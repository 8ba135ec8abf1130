// Where weights are cut, and what becomes of the nodes that read them.
// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pteryx/fuse/constants.h"
#include "pteryx/fuse/passes.h"
#include "pteryx/ops/table.h"

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about
namespace {

struct Draft {
  Graph g;
  uint64_t end = 0;  // of the data so far

  ValueId value(Value v) {
    g.values.push_back(std::move(v));
    g.labels.push_back(fmt::format("value {}", g.values.size() - 1));
    return ValueId{static_cast<uint32_t>(g.values.size() - 1)};
  }
  ValueId tensor(const Dims& dims) { return value(Tensor{.dtype = DType::kF32, .max = dims}); }
  // Constants lie one behind the other.
  ValueId constant(DType t, const Dims& dims) {
    const uint64_t bytes = static_cast<uint64_t>(numel(dims)) * size_bytes(t);
    const uint64_t at = std::exchange(end, end + bytes);
    return value(Tensor{.dtype = t, .max = dims, .data = {{0, at, bytes}}});
  }
  ValueId none() { return value(Null{}); }
  ValueId number(int64_t v) { return value(v); }
  ValueId call(std::string_view op, std::vector<ValueId> args, const Dims& dims) {
    args.push_back(tensor(dims));
    Node n;
    n.op = ops::lookup().find(op);
    n.spelling = op;
    n.args = args;
    g.nodes.push_back(n);
    return args.back();
  }
  std::string names() const {
    std::string text;
    for (const Node& n : g.nodes)
      text += n.kind == Node::Kind::kJumpFalse ? fmt::format("jump to {} ", n.target)
                                               : std::string(n.op->name) + " ";
    return text;
  }
  const Tensor& arg(size_t node, size_t a) const { return *g.tensor(g.nodes[node].args[a]); }
  std::string data(size_t node, size_t a) const { return text(arg(node, a)); }
  static std::string text(const Tensor& t) {
    std::string s = fmt::format("{}:", to_string(t.max));
    for (const ByteRange& r : t.data) s += fmt::format(" {}+{}", r.offset, r.size);
    return s;
  }
};

TEST(SplitRows, WeightsThatFitStay) {
  Draft d;
  const ValueId w = d.constant(DType::kF32, {10, 8});
  d.call("aten.linear.default", {d.tensor({1, 8}), w, d.none()}, {1, 10});
  EXPECT_TRUE(split_rows(d.g, ops::lookup(), 320).empty());
  EXPECT_EQ(d.names(), "aten.linear.default ");
  EXPECT_EQ(split_rows(d.g, ops::lookup(), 319).size(), 1U);
}

// As many rows as a hostile file may say that it has.
TEST(SplitRows, RowsOfNothingStay) {
  constexpr int64_t kRows = 0x7fffffff;
  Draft d;
  d.call("aten.linear.default", {d.tensor({1, 0}), d.constant(DType::kF32, {kRows, 0}), d.none()},
         {1, kRows});
  EXPECT_TRUE(split_rows(d.g, ops::lookup(), 64).empty());
  EXPECT_EQ(d.g.nodes.size(), 1U);
}

TEST(SplitRows, LinearBecomesPartsAndACat) {
  Draft d;
  const ValueId x = d.tensor({1, 8});
  const ValueId w = d.constant(DType::kF32, {10, 8});
  const ValueId bias = d.constant(DType::kF32, {10});
  const ValueId y = d.call("aten.linear.default", {x, w, bias}, {1, 10});
  const auto splits = split_rows(d.g, ops::lookup(), 4 * 32);
  ASSERT_EQ(splits.size(), 1U);
  EXPECT_EQ(splits[0].weight, w);
  EXPECT_EQ(splits[0].parts, 3U);
  EXPECT_EQ(d.names(),
            "aten.linear.default aten.linear.default aten.linear.default aten.cat.default ");
  EXPECT_EQ(d.data(0, 1), "[4, 8]: 0+128");
  EXPECT_EQ(d.data(1, 1), "[4, 8]: 128+128");
  EXPECT_EQ(d.data(2, 1), "[2, 8]: 256+64");
  EXPECT_EQ(d.data(1, 2), "[4]: 336+16");
  EXPECT_EQ(d.arg(2, 3).max, (Dims{1, 2}));
  const auto& list = std::get<ValueList>(d.g[d.g.nodes[3].args[0]]);
  ASSERT_EQ(list.items.size(), 3U);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(list.items[i], d.g.nodes[i].args.back());
  EXPECT_EQ(d.g.nodes[3].args.back(), y);
}

// [K, N]: ranges of each row, or of the bytes where these lie by columns.
TEST(SplitRows, MatricesAreCutByTheirColumns) {
  for (const bool by_columns : {false, true}) {
    Draft d;
    const ValueId w = d.constant(DType::kF32, {2, 8});
    if (by_columns) std::get<Tensor>(d.g.values[index(w)]).dim_order = {1, 0};
    const ValueId self = d.tensor({3, 8});
    d.call("aten.addmm.default", {self, d.tensor({3, 2}), w, d.number(1), d.number(1)}, {3, 8});
    split_rows(d.g, ops::lookup(), 64);  // rows count as 16 bytes
    EXPECT_EQ(d.names(),
              "aten.slice_copy.Tensor aten.addmm.default aten.slice_copy.Tensor aten.addmm.default "
              "aten.cat.default ");
    EXPECT_EQ(d.data(1, 2), by_columns ? "[2, 4]: 0+32" : "[2, 4]: 0+16 32+16");
    EXPECT_EQ(d.data(3, 2), by_columns ? "[2, 4]: 32+32" : "[2, 4]: 16+16 48+16");
    EXPECT_EQ(d.g.nodes[3].args[0], d.g.nodes[2].args.back());
    EXPECT_EQ(d.arg(3, 0).max, (Dims{3, 4}));
  }
}

TEST(SplitRows, WhatGoesWithEveryColumnStays) {
  Draft d;
  const ValueId self = d.tensor({3, 1});
  const ValueId w = d.constant(DType::kF32, {2, 8});
  d.call("aten.addmm.default", {self, d.tensor({3, 2}), w, d.number(1), d.number(1)}, {3, 8});
  split_rows(d.g, ops::lookup(), 64);
  EXPECT_EQ(d.names(), "aten.addmm.default aten.addmm.default aten.cat.default ");
  EXPECT_EQ(d.g.nodes[1].args[0], self);
}

// Rows of the weight, columns of the scales: the table of an embedding that shares both is cut at
// the same rows, and its parts are the same values.
TEST(SplitRows, TiedWeightsShareTheirParts) {
  Draft d;
  const ValueId w = d.constant(DType::kU8, {64, 16});       // 32 columns
  const ValueId scales = d.constant(DType::kF32, {2, 64});  // 16 for each scale
  const ValueId ids = d.tensor({1, 3});
  const ValueId x = d.call("et_vk.embedding_q4gsw.default",
                           {w, scales, d.number(16), ids, d.number(1)}, {1, 3, 32});
  d.call("et_vk.linear_q4gsw.default", {x, w, scales, d.number(16), d.none()}, {1, 3, 64});
  const auto splits = split_rows(d.g, ops::lookup(), 512);
  ASSERT_EQ(splits.size(), 1U);
  EXPECT_EQ(splits[0].parts, 2U);
  EXPECT_EQ(d.names(),
            "pteryx.embedding_parts et_vk.linear_q4gsw.default et_vk.linear_q4gsw.default "
            "aten.cat.default ");
  const auto& tables = std::get<ValueList>(d.g[d.g.nodes[0].args[0]]).items;
  const auto& parts = std::get<ValueList>(d.g[d.g.nodes[0].args[1]]).items;
  ASSERT_EQ(tables.size(), 2U);
  ASSERT_EQ(parts.size(), 2U);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(d.g.nodes[1 + i].args[1], tables[i]);
    EXPECT_EQ(d.g.nodes[1 + i].args[2], parts[i]);
  }
  EXPECT_EQ(Draft::text(*d.g.tensor(tables[1])), "[32, 16]: 512+512");
  EXPECT_EQ(Draft::text(*d.g.tensor(parts[1])), "[2, 32]: 1152+128 1408+128");
  EXPECT_EQ(d.g.nodes[0].args[6], ids);
}

TEST(SplitRows, PartsAreInUnitsThatKernelsLike) {
  Draft d;
  const ValueId w = d.constant(DType::kF32, {1000, 4});
  d.call("aten.embedding.default", {w, d.tensor({3}), d.none(), d.none(), d.none()}, {3, 4});
  split_rows(d.g, ops::lookup(), 400 * 16);
  const auto& tables = std::get<ValueList>(d.g[d.g.nodes[0].args[0]]).items;
  ASSERT_EQ(tables.size(), 3U);
  EXPECT_EQ(d.g.tensor(tables[0])->max, (Dims{384, 4}));  // 334 and up to a multiple of 64
  EXPECT_EQ(d.g.tensor(tables[2])->max, (Dims{232, 4}));
}

TEST(SplitRows, JumpsGoWhereTheyWent) {
  Draft d;
  const ValueId x = d.tensor({1, 8});
  const ValueId w = d.constant(DType::kF32, {8, 8});
  d.g.has_jumps = true;
  Node jump;
  jump.kind = Node::Kind::kJumpFalse;
  jump.args = {d.value(LiveScalar{})};
  jump.target = 3;
  d.g.nodes.push_back(jump);
  const ValueId y = d.call("aten.linear.default", {x, w, d.none()}, {1, 8});
  d.call("aten.relu.default", {y}, {1, 8});
  jump.target = 1;
  d.g.nodes.push_back(jump);
  jump.target = 5;  // the end
  d.g.nodes.push_back(jump);
  run_passes(d.g, ops::lookup(), {.most_constant_bytes = 128});
  EXPECT_EQ(d.names(),
            "jump to 5 aten.linear.default aten.linear.default aten.cat.default "
            "aten.relu.default jump to 1 jump to 7 ");
}

// What stays is refused with its name when limits are compared.
TEST(SplitRows, WhatCannotBeCutStays) {
  const auto stays = [](std::string_view what, uint64_t most, const auto& make) {
    Draft d;
    make(d);
    const std::string before = d.names();
    EXPECT_TRUE(split_rows(d.g, ops::lookup(), most).empty()) << what;
    EXPECT_EQ(d.names(), before) << what;
  };
  stays("a row that is too large alone", 16, [](Draft& d) {
    d.call("aten.linear.default", {d.tensor({1, 8}), d.constant(DType::kF32, {4, 8}), d.none()},
           {1, 4});
  });
  stays("a weight that is computed", 64, [](Draft& d) {
    d.call("aten.linear.default", {d.tensor({1, 8}), d.tensor({4, 8}), d.none()}, {1, 4});
  });
  stays("state", 64, [](Draft& d) {
    const ValueId w = d.constant(DType::kF32, {4, 8});
    std::get<Tensor>(d.g.values[index(w)]).state = true;
    d.call("aten.linear.default", {d.tensor({1, 8}), w, d.none()}, {1, 4});
  });
  stays("a type that the GPU does not hold", 64, [](Draft& d) {
    d.call("aten.linear.default", {d.tensor({1, 8}), d.constant(DType::kF64, {4, 8}), d.none()},
           {1, 4});
  });
  stays("a result of another width", 64, [](Draft& d) {
    d.call("aten.linear.default", {d.tensor({1, 8}), d.constant(DType::kF32, {4, 8}), d.none()},
           {1, 5});
  });
  stays("scales of too few rows", 64, [](Draft& d) {
    d.call("aten._weight_int8pack_mm.default",
           {d.tensor({1, 32}), d.constant(DType::kI8, {4, 32}), d.constant(DType::kF32, {3})},
           {1, 4});
  });
}

// Q, K and V, each of which fits, stay apart where together they would not; what is added to a
// layer that is split stays behind it.
TEST(SplitRows, LayersAreJoinedWithinTheLimit) {
  for (const uint64_t most : {64U * 16, 64U * 16 - 1}) {
    Draft d;
    const ValueId x = d.tensor({1, 16});
    d.g.inputs = {x};
    for (int i = 0; i < 2; ++i) {
      const ValueId w = d.constant(DType::kI8, {32, 16});
      const ValueId s = d.constant(DType::kF32, {32});
      d.g.outputs.push_back(d.call("aten._weight_int8pack_mm.default", {x, w, s}, {1, 32}));
    }
    run_passes(d.g, ops::lookup(), {.most_constant_bytes = most});
    EXPECT_EQ(d.names(), most == 64U * 16 ? "pteryx.linear_q8 "
                                          : "aten._weight_int8pack_mm.default "
                                            "aten._weight_int8pack_mm.default ");
  }
  for (const uint64_t most : {32U * 16, 32U * 16 - 1}) {
    Draft d;
    const ValueId x = d.tensor({1, 16});
    const ValueId r = d.tensor({1, 32});
    d.g.inputs = {x, r};
    const ValueId w = d.constant(DType::kI8, {32, 16});
    const ValueId s = d.constant(DType::kF32, {32});
    const ValueId y = d.call("aten._weight_int8pack_mm.default", {x, w, s}, {1, 32});
    d.g.outputs = {d.call("aten.add.Tensor", {y, r, d.number(1)}, {1, 32})};
    run_passes(d.g, ops::lookup(), {.most_constant_bytes = most});
    EXPECT_EQ(d.names(), most == 32U * 16
                             ? "pteryx.linear_q8 "
                             : "aten._weight_int8pack_mm.default aten._weight_int8pack_mm.default "
                               "aten.cat.default aten.add.Tensor ");
  }
}

TEST(ConstantPart, GoesThroughRangesAndOrders) {
  // Two ranges of 24 bytes; [2, 3, 2] f32.
  Tensor t{.dtype = DType::kF32, .max = {2, 3, 2}, .data = {{0, 0, 20}, {1, 100, 28}}};
  EXPECT_EQ(Draft::text(*constant_part(t, {.dim = 0, .first = 1, .count = 1})),
            "[1, 3, 2]: 104+24");
  EXPECT_EQ(Draft::text(*constant_part(t, {.dim = 1, .first = 1, .count = 2})),
            "[2, 2, 2]: 8+12 100+4 112+16");
  EXPECT_EQ(Draft::text(*constant_part(t, {.dim = 0, .first = 3, .count = 2, .as = Dims{12}})),
            "[2]: 12+8");
  t.dim_order = {2, 0, 1};  // of bytes: [2, 2, 3] for dims 2, 0, 1
  EXPECT_EQ(Draft::text(*constant_part(t, {.dim = 0, .first = 1, .count = 1})),
            "[1, 3, 2]: 12+8 100+4 116+12");
  EXPECT_EQ(constant_part(t, {.first = 3, .count = 2, .as = Dims{12}}), std::nullopt);
  // Of the bytes' type.
  t = {.dtype = DType::kF32, .max = {4}, .data = {{0, 0, 8}}};
  t.stored = DType::kBF16;
  EXPECT_EQ(Draft::text(*constant_part(t, {.first = 1, .count = 2})), "[2]: 2+4");
}

}  // namespace
}  // namespace pteryx::fuse
