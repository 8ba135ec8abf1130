// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/fuse/passes.h"

#include <string>

#include <gtest/gtest.h>

#include "pteryx/ops/table.h"

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about
namespace {

struct Draft {
  Graph g;
  ValueId tensor(DType dtype = DType::kF32, const Dims& dims = {4}) {
    g.values.emplace_back(Tensor{.dtype = dtype, .max = dims});
    g.labels.emplace_back();
    return ValueId{static_cast<uint32_t>(g.values.size() - 1)};
  }
  // The result of a call.
  ValueId call(std::string_view op, std::vector<ValueId> args, DType dtype = DType::kF32) {
    args.push_back(tensor(dtype));
    Node n;
    n.op = ops::lookup().find(op);
    n.spelling = op;
    n.args = args;
    g.nodes.push_back(n);
    return args.back();
  }
  std::string run() {
    run_passes(g, ops::lookup());
    std::string names;
    for (const Node& n : g.nodes) names += std::string(n.op->name) + " ";
    return names;
  }
};

TEST(Passes, SiluIsPutTogether) {
  Draft d;
  const ValueId x = d.tensor();
  const ValueId up = d.tensor();
  d.g.inputs = {x, up};
  const ValueId s = d.call("aten.sigmoid.default", {x});
  const ValueId silu = d.call("aten.mul.Tensor", {s, x});
  d.g.outputs = {d.call("aten.mul.Tensor", {up, silu})};
  EXPECT_EQ(d.run(), "pteryx.silu_mul ");
  EXPECT_EQ(d.g.nodes[0].args, (std::vector{x, up, d.g.outputs[0]}));
}

TEST(Passes, ASigmoidThatSomebodyElseReadsStays) {
  Draft d;
  const ValueId x = d.tensor();
  d.g.inputs = {x};
  const ValueId s = d.call("aten.sigmoid.default", {x});
  d.g.outputs = {d.call("aten.mul.Tensor", {x, s}), s};
  EXPECT_EQ(d.run(), "aten.sigmoid.default aten.mul.Tensor ");
}

TEST(Passes, ASigmoidOfSomethingElseStays) {
  Draft d;
  const ValueId x = d.tensor();
  const ValueId y = d.tensor();
  d.g.inputs = {x, y};
  const ValueId s = d.call("aten.sigmoid.default", {x});
  d.g.outputs = {d.call("aten.mul.Tensor", {y, s})};
  EXPECT_EQ(d.run(), "aten.sigmoid.default aten.mul.Tensor ");
}

TEST(Passes, StateIsNotReadLater) {
  Draft d;
  const ValueId x = d.tensor();
  std::get<Tensor>(d.g.values[index(x)]).state = true;
  const ValueId s = d.call("aten.sigmoid.default", {x});
  d.g.outputs = {d.call("aten.mul.Tensor", {x, s})};
  EXPECT_EQ(d.run(), "aten.sigmoid.default aten.mul.Tensor ");
}

TEST(Passes, IndicesAreReadAsTheCallerGaveThem) {
  Draft d;
  const ValueId weight = d.tensor();
  const ValueId tokens = d.tensor(DType::kI64);
  d.g.inputs = {tokens};
  const ValueId narrow = d.call("pteryx.copy", {tokens}, DType::kI32);
  d.g.outputs = {d.call("aten.embedding.default", {weight, narrow})};
  EXPECT_EQ(d.run(), "aten.embedding.default ");
  EXPECT_EQ(d.g.nodes[0].args[1], tokens);
}

TEST(Passes, NumbersThatAreComputedWithAreNarrowed) {
  Draft d;
  const ValueId weight = d.tensor();
  const ValueId tokens = d.tensor(DType::kI64);
  d.g.inputs = {tokens};
  const ValueId narrow = d.call("pteryx.copy", {tokens}, DType::kI32);
  d.g.outputs = {d.call("aten.embedding.default", {weight, narrow}),
                 d.call("aten.relu.default", {narrow})};
  EXPECT_EQ(d.run(), "pteryx.copy aten.embedding.default aten.relu.default ");
}

// norm -> linear -> gelu -> linear: what only a product reads, and rounds, is made in f16.
TEST(Passes, OperandsOfProductsAreHalves) {
  for (const Precision precision : {Precision::kF32, Precision::kF16}) {
    Draft d;
    const auto constant = [&](const Dims& dims) {
      const ValueId id = d.tensor(DType::kF32, dims);
      std::get<Tensor>(d.g.values[index(id)]).data = {
          {0, 0, static_cast<uint64_t>(numel(dims)) * 4}};
      return id;
    };
    const auto call = [&](std::string_view op, std::vector<ValueId> args, ValueId y) {
      args.push_back(y);
      d.g.nodes.push_back({.op = ops::lookup().find(op), .spelling = op, .args = args});
    };
    const ValueId none = d.g.add(Null{}, "");
    const ValueId x = d.tensor(DType::kF32, {6, 16});
    const ValueId normed = d.tensor(DType::kF32, {6, 16});
    const ValueId wide = d.tensor(DType::kF32, {6, 32});
    const ValueId bent = d.tensor(DType::kF32, {6, 32});
    const ValueId y = d.tensor(DType::kF32, {6, 16});
    call("aten.native_layer_norm.default",
         {x, d.g.add(IntList{{16}}, ""), none, none, d.g.add(1e-5, "")},
         d.g.add(ValueList{{normed, d.tensor(), d.tensor()}}, ""));
    call("aten.linear.default", {normed, constant({32, 16}), none}, wide);
    call("aten.gelu.default", {wide, d.g.add(std::string("none"), "")}, bent);
    call("aten.linear.default", {bent, constant({16, 32}), none}, y);
    d.g.inputs = {x};
    d.g.outputs = {y};
    run_passes(d.g, ops::lookup(), {.precision = precision});
    ASSERT_EQ(d.g.nodes.size(), 3U);
    const DType want = precision == Precision::kF16 ? DType::kF16 : DType::kF32;
    EXPECT_EQ(d.g.tensor(normed)->dtype, want);
    EXPECT_EQ(d.g.tensor(bent)->dtype, want);
    EXPECT_EQ(d.g.tensor(y)->dtype, DType::kF32);
  }
}

// Queries, keys and values that one layer makes, seen as heads.
TEST(Passes, OperandsOfAttentionAreHalves) {
  for (const bool read_elsewhere : {false, true}) {
    Draft d;
    const auto call = [&](std::string_view op, std::vector<ValueId> args, ValueId y) {
      args.push_back(y);
      d.g.nodes.push_back({.op = ops::lookup().find(op), .spelling = op, .args = args});
    };
    const auto integer = [&](int64_t i) { return d.g.add(i, ""); };
    const ValueId none = d.g.add(Null{}, "");
    const ValueId x = d.tensor(DType::kF32, {6, 16});
    const ValueId weight = d.tensor(DType::kF32, {48, 16});
    std::get<Tensor>(d.g.values[index(weight)]).data = {{0, 0, 48 * 16 * 4}};
    const ValueId packed = d.tensor(DType::kF32, {6, 48});
    const ValueId heads = d.tensor(DType::kF32, {1, 6, 6, 8});
    const ValueId y = d.tensor(DType::kF32, {1, 6, 2, 8});
    call("aten.linear.default", {x, weight, none}, packed);
    call("pteryx.view", {packed}, heads);
    call("pteryx.attention",
         {heads, heads, heads, integer(2), integer(0), integer(2), integer(4), none}, y);
    d.g.inputs = {x};
    d.g.outputs = {y};
    if (read_elsewhere) d.g.outputs.push_back(packed);
    run_passes(d.g, ops::lookup(), {.precision = Precision::kF16});
    const DType want = read_elsewhere ? DType::kF32 : DType::kF16;
    EXPECT_EQ(d.g.tensor(packed)->dtype, want);
    EXPECT_EQ(d.g.tensor(heads)->dtype, want);
    EXPECT_EQ(d.g.tensor(y)->dtype, DType::kF32);
  }
}

// What only casts a constant is no work of a run; what the GPU holds as it is stays.
TEST(Passes, CastsOfConstantsAreFolded) {
  const auto run = [](DType from, DType to, bool constant, bool output) {
    Draft d;
    const ValueId x = d.tensor();
    const ValueId c = d.tensor(from);
    if (constant) std::get_if<Tensor>(&d.g.values[index(c)])->data = {{0, 8, 4 * size_bytes(from)}};
    const ValueId none = d.g.add(Null{}, "None");
    const ValueId cast =
        d.call("aten._to_copy.default", {c, none, none, none, none, none, none}, to);
    const ValueId y = d.call("aten.mul.Tensor", {x, cast});
    d.g.inputs = {x};
    if (!constant) d.g.inputs.push_back(c);
    d.g.outputs = {output ? cast : y};
    const std::string names = d.run();
    const Tensor& t = *d.g.tensor(cast);
    EXPECT_EQ(t.is_constant(), names == "aten.mul.Tensor ");
    if (t.is_constant()) {
      EXPECT_EQ(t.stored, from);
      EXPECT_EQ(t.data, (std::vector<ByteRange>{{0, 8, 4 * size_bytes(from)}}));
    }
    return names;
  };
  for (const DType from : {DType::kI64, DType::kF64, DType::kBF16})
    EXPECT_EQ(run(from, DType::kF32, true, false), "aten.mul.Tensor ");
  const std::string both = "aten._to_copy.default aten.mul.Tensor ";
  EXPECT_EQ(run(DType::kI64, DType::kF32, false, false), both);
  EXPECT_EQ(run(DType::kI64, DType::kF32, true, true), both);
  EXPECT_EQ(run(DType::kI64, DType::kI32, true, false), both);
  for (const DType from : {DType::kI8, DType::kF16})
    EXPECT_EQ(run(from, DType::kF32, true, false), both);
}

}  // namespace
}  // namespace pteryx::fuse
