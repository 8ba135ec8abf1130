// What is taken for minimums of a layer, and what is not. SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/fuse/calls.h"
#include "pteryx/fuse/passes.h"
#include "pteryx/ops/table.h"

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about
namespace {

constexpr int64_t kRows = 8;
constexpr int64_t kK = 96;
constexpr int64_t kN = 16;

// How a layer with minimums is written; what differs from that is no such layer.
struct Written {
  int64_t group = 32;  // whose sums are taken
  std::vector<int64_t> dims = {-1};
  Dims product = {3, kN};  // the constant
  bool is_constant = true;
  double alpha = 1;
  bool other_x = false;    // sums are of another tensor
  bool y_is_read = false;  // the layer's result, by somebody else
  bool sums_are_read = false;
  bool swapped = false;  // summands
  bool one_row = false;  // x [1, K]
};

struct Draft {
  Graph g;
  ValueId z = kNoValue;
  ValueId out = kNoValue;

  ValueId tensor(const Dims& dims) { return g.add(Tensor{.dtype = DType::kF32, .max = dims}, ""); }
  ValueId constant(DType t, const Dims& dims) {
    const auto bytes = static_cast<uint64_t>(numel(dims)) * size_bytes(t);
    return g.add(Tensor{.dtype = t, .max = dims, .data = {{0, g.values.size() * 4096, bytes}}}, "");
  }
  ValueId call(std::string_view op, std::vector<ValueId> args, const Dims& dims) {
    args.push_back(tensor(dims));
    Node n;
    n.op = ops::lookup().find(op);
    n.spelling = n.op->name;
    n.args = std::move(args);
    g.nodes.push_back(std::move(n));
    return g.nodes.back().args.back();
  }
  ValueId view(ValueId x, const Dims& dims) {
    return call("aten.view_copy.default", {x, g.add(IntList{{dims.begin(), dims.end()}}, "")},
                dims);
  }

  explicit Draft(const Written& w) {
    const int64_t rows = w.one_row ? 1 : kRows;
    const Dims x_dims = w.one_row ? Dims{1, kK} : Dims{1, kRows, kK};
    Dims y_dims = x_dims;
    y_dims[y_dims.rank() - 1] = kN;
    const ValueId x = tensor(x_dims);
    const ValueId other = tensor(x_dims);
    g.inputs = {x, other};
    const ValueId y = call("et_vk.linear_q4gsw.default",
                           {x, constant(DType::kU8, {kN, kK / 2}), constant(DType::kF32, {3, kN}),
                            g.add(int64_t{32}, ""), g.add(Null{}, "")},
                           y_dims);
    const Dims grouped = {rows, kK / w.group, w.group};
    const ValueId sums = call(
        "aten.sum.dim_IntList",
        {view(w.other_x ? other : x, grouped), g.add(IntList{{w.dims.begin(), w.dims.end()}}, ""),
         g.add(false, ""), g.add(Null{}, "")},
        {rows, kK / w.group});
    z = w.is_constant ? constant(DType::kF32, w.product) : tensor(w.product);
    if (!w.is_constant) g.inputs.push_back(z);
    ValueId product = call("aten.mm.default", {sums, z}, {rows, kN});
    if (!w.one_row) product = view(product, y_dims);
    const std::vector<ValueId> both = w.swapped ? std::vector{product, y} : std::vector{y, product};
    out = call("aten.add.Tensor", {both[0], both[1], g.add(w.alpha, "")}, y_dims);
    g.outputs = {out};
    if (w.y_is_read) g.outputs.push_back(y);
    if (w.sums_are_read) g.outputs.push_back(sums);
  }
  std::string run(uint64_t most_bytes = 1 << 20) {
    take_minimums(g, ops::lookup(), most_bytes);
    std::string names;
    for (const Node& n : g.nodes) names += std::string(n.op->name) + " ";
    return names;
  }
};

TEST(Minimums, BecomePartOfTheLayer) {
  for (const Written& w :
       {Written{}, Written{.dims = {2}}, Written{.swapped = true}, Written{.one_row = true}}) {
    Draft d(w);
    EXPECT_EQ(d.run(), "pteryx.linear_q4gsw ");
    EXPECT_EQ(argument(d.g.nodes[0], "minimums"), d.z);
    EXPECT_EQ(std::get<ValueList>(d.g[argument(d.g.nodes[0], "y")]).items, std::vector{d.out});
  }
}

TEST(Minimums, SumsThatSomebodyElseReadsStay) {
  Draft d({.sums_are_read = true});
  EXPECT_EQ(d.run(), "pteryx.linear_q4gsw aten.view_copy.default aten.sum.dim_IntList ");
}

// Files may have anything in the place of an argument.
TEST(Minimums, ALayerWithoutScalesStays) {
  for (const size_t arg : {2U, 3U}) {  // scales, group_size
    Draft d({});
    d.g.nodes[0].args[arg] = d.g.add(Null{}, "");
    EXPECT_EQ(d.run().substr(0, 26), "et_vk.linear_q4gsw.default");
  }
}

TEST(Minimums, OtherSumsStay) {
  const std::string as_it_was = Draft({}).run(0);  // no constant is as small as that
  EXPECT_EQ(as_it_was.substr(0, 26), "et_vk.linear_q4gsw.default");
  const Written others[] = {
      {.group = 16, .product = {6, kN}},
      {.dims = {1}},
      {.dims = {1, 2}},
      {.is_constant = false},
      {.alpha = 2},
      {.other_x = true},
      {.y_is_read = true},
  };
  for (const Written& w : others) {
    Draft d(w);
    EXPECT_EQ(d.run(), as_it_was);
    EXPECT_EQ(d.g.outputs[0], d.g.nodes.back().args.back());
  }
}

}  // namespace
}  // namespace pteryx::fuse
