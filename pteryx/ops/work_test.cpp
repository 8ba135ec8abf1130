// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/work.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/graph/graph.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

// One call of an operator, at the sizes it is made with.
struct Call {
  graph::Graph g;
  Live live;

  Call(std::string_view op, std::vector<graph::Value> args) {
    graph::Node n;
    n.op = lookup().find(op);
    n.spelling = n.op->name;
    for (graph::Value& v : args) {
      const auto* t = std::get_if<graph::Tensor>(&v);
      live.dims.push_back(t == nullptr ? Dims() : t->max);
      live.scalars.emplace_back();
      n.args.push_back(ValueId{static_cast<uint32_t>(g.values.size())});
      g.values.push_back(std::move(v));
      g.labels.emplace_back("value");
    }
    g.nodes.push_back(std::move(n));
  }
  Node node() const { return {g, g.nodes[0], op(*g.nodes[0].op), live}; }
  double flops() const { return flops_of(node()); }
  double bytes(uint32_t arg) const { return bytes_of(node(), ValueId{arg}); }
};

graph::Tensor f32(const Dims& dims) { return {.dtype = DType::kF32, .max = dims}; }
graph::Tensor i64(const Dims& dims) { return {.dtype = DType::kI64, .max = dims}; }
graph::Tensor u8(const Dims& dims) { return {.dtype = DType::kU8, .max = dims}; }
graph::Value none() { return graph::Null{}; }

TEST(Work, MatrixProducts) {
  EXPECT_EQ(
      Call("aten.linear.default", {f32({2, 3, 8}), f32({5, 8}), none(), f32({2, 3, 5})}).flops(),
      2.0 * 6 * 5 * 8);
  EXPECT_EQ(Call("aten.mm.default", {f32({4, 8}), f32({8, 5}), f32({4, 5})}).flops(),
            2.0 * 4 * 5 * 8);
  EXPECT_EQ(Call("aten.bmm.default", {f32({3, 4, 8}), f32({3, 8, 5}), f32({3, 4, 5})}).flops(),
            2.0 * 3 * 4 * 5 * 8);
  EXPECT_EQ(Call("aten.addmm.default",
                 {f32({5}), f32({4, 8}), f32({8, 5}), int64_t{1}, int64_t{1}, f32({4, 5})})
                .flops(),
            2.0 * 4 * 5 * 8);
  EXPECT_EQ(Call("et_vk.linear_q4gsw.default", {f32({1, 3, 64}), u8({10, 32}), f32({2, 10}),
                                                int64_t{32}, none(), f32({1, 3, 10})})
                .flops(),
            2.0 * 3 * 10 * 64);
  // A gate leaves half of the columns.
  EXPECT_EQ(Call("pteryx.linear_q4gsw",
                 {f32({1, 3, 64}), none(), none(), u8({10, 32}), f32({2, 10}), int64_t{32}, none(),
                  none(), none(), true, none(), graph::IntList{{5}}, f32({1, 3, 5})})
                .flops(),
            2.0 * 3 * 10 * 64);
}

TEST(Work, Convolutions) {
  const auto conv = [](const Dims& x, const Dims& w, bool transposed, const Dims& y) {
    const graph::Value pair = graph::IntList{{1, 1}};
    return Call("aten.convolution.default",
                {f32(x), f32(w), none(), pair, pair, pair, transposed, pair, int64_t{1}, f32(y)})
        .flops();
  };
  EXPECT_EQ(conv({1, 3, 8, 8}, {16, 3, 3, 3}, false, {1, 16, 8, 8}), 2.0 * 16 * 64 * 27);
  EXPECT_EQ(conv({1, 16, 8, 8}, {16, 1, 3, 3}, false, {1, 16, 8, 8}), 2.0 * 16 * 64 * 9);
  EXPECT_EQ(conv({1, 4, 8, 8}, {4, 6, 2, 2}, true, {1, 6, 16, 16}), 2.0 * 4 * 64 * 6 * 4);
}

// Rows see the context before them and themselves; caches are read as far as that.
TEST(Work, Attention) {
  const auto attention = [](int64_t rows, int64_t start) {
    const Dims q = {1, rows, 8, 16};
    const Dims kv = {1, rows, 2, 16};
    const Dims cache = {1, 100, 2, 16};
    return Call("sdpa_with_kv_cache.default",
                {f32(q), f32(kv), f32(kv), f32(cache), f32(cache), start, int64_t{1}, none(),
                 none(), true, none(), f32(q)});
  };
  EXPECT_EQ(attention(1, 9).flops(), 4.0 * 8 * 16 * 10);
  EXPECT_EQ(attention(3, 0).flops(), 4.0 * 8 * 16 * (1 + 2 + 3));
  EXPECT_EQ(attention(1, 9).bytes(3), 4.0 * 10 * 2 * 16);
  EXPECT_EQ(attention(1, 9).bytes(0), 4.0 * 8 * 16);
  EXPECT_EQ(Call("et_vk.sdpa.default", {f32({1, 8, 5, 16}), f32({1, 8, 7, 16}), f32({1, 8, 7, 16}),
                                        none(), none(), f32({1, 8, 5, 16})})
                .flops(),
            4.0 * 8 * 5 * 16 * 7);
}

TEST(Work, OfATableTheRowsThatAreLookedUp) {
  const Call call("aten.embedding.default",
                  {f32({1000, 16}), i64({1, 3}), int64_t{-1}, false, false, f32({1, 3, 16})});
  EXPECT_EQ(call.bytes(0), 3.0 * 16 * 4);
  EXPECT_EQ(call.bytes(1), 3.0 * 4);  // narrowed
  EXPECT_EQ(call.bytes(5), 3.0 * 16 * 4);
  EXPECT_EQ(call.flops(), 0);
}

TEST(Work, OtherOperatorsReadAllAndCountNothing) {
  const Call call("aten.add.Tensor", {f32({7, 33}), f32({7, 33}), int64_t{1}, f32({7, 33})});
  EXPECT_EQ(call.flops(), 0);
  EXPECT_EQ(call.bytes(0), 7.0 * 33 * 4);
}

}  // namespace
}  // namespace pteryx::ops
