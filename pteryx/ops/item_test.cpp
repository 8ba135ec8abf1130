// Scalars out of tensors, by themselves. SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

// x [..] -> the scalar that `name` reads of it, with a dim and an index where it takes them.
Result<int64_t> read(std::string_view name, const HostTensor& x, std::vector<int64_t> numbers) {
  graph::Graph g;
  Live live;
  const auto add = [&](graph::Value v, const Dims& dims = {}) {
    g.values.push_back(std::move(v));
    g.labels.push_back(fmt::format("value {}", g.values.size() - 1));
    live.dims.push_back(dims);
    live.scalars.emplace_back();
    return ValueId{static_cast<uint32_t>(g.values.size() - 1)};
  };
  graph::Node node{.op = lookup().find(name), .spelling = name};
  node.args.push_back(add(graph::Tensor{.dtype = x.dtype, .max = {5, 7}}, x.dims));
  for (const int64_t v : numbers) node.args.push_back(add(v));
  node.args.push_back(add(graph::LiveScalar{}));
  const OpDef& def = op(*node.op);
  const Node n(g, node, def, live);
  Shapes shapes(n, live);
  PTERYX_TRY(def.item(n, x, shapes));
  return live.scalars.back().i;
}

std::string refusal(std::string_view name, const HostTensor& x, std::vector<int64_t> numbers) {
  const auto got = read(name, x, std::move(numbers));
  if (got.ok()) return "accepted";
  EXPECT_EQ(got.status().code(), Code::kInvalidArgument);
  return std::string(got.status().message());
}

TEST(Item, ASourceWithoutElementsIsRefusedByItsOwnText) {
  int64_t values[] = {4, 5, 6, 7, 8, 9};
  auto* bytes = reinterpret_cast<std::byte*>(values);
  constexpr std::string_view kSelect = "et_vk.select_as_symint.default";
  const auto got = read(kSelect, {DType::kI64, {2, 3}, bytes}, {0, 1});
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(*got, 7);
  EXPECT_NE(refusal(kSelect, {DType::kI64, {0, 3}, bytes}, {0, 0}).find("x [0, 3] is empty"),
            std::string::npos);
  EXPECT_NE(refusal(kSelect, {DType::kI64, {2, 0}, bytes}, {0, 1}).find("x [2, 0] is empty"),
            std::string::npos);
  // Not the text of an index that is outside.
  EXPECT_NE(refusal(kSelect, {DType::kI64, {2, 3}, bytes}, {0, 2}).find("index: expected -2 to 1"),
            std::string::npos);
  EXPECT_NE(refusal(graph::kItemOp, {DType::kI64, {0}, bytes}, {})
                .find("x: expected one element, got [0]"),
            std::string::npos);
}

}  // namespace
}  // namespace pteryx::ops
