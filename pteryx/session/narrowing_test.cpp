// i64 at the border of the GPU, which has i32: what does not fit is refused, never cut.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/gpu/device.h"
#include "pteryx/ops/table.h"
#include "pteryx/session/inspect.h"
#include "pteryx/session/method.h"

namespace pteryx {
namespace {

using graph::Tensor;
using graph::ValueId;

constexpr int64_t kFar = int64_t{1} << 32;  // 0 when it is cut

std::shared_ptr<gpu::Device> device() {
  static const std::shared_ptr<gpu::Device> d = [] {
    auto r = gpu::open_device();
    if (!r.ok()) std::abort();
    return *r;
  }();
  return d;
}

// y = x[index]: rows that i64 indices choose.
struct Choice {
  graph::Graph g;
  ValueId x, index, y;

  explicit Choice(Tensor indices) {
    const auto value = [&](graph::Value v) {
      g.values.push_back(std::move(v));
      g.labels.push_back("value " + std::to_string(g.values.size() - 1));
      return ValueId{static_cast<uint32_t>(g.values.size() - 1)};
    };
    const bool constant = indices.has_data();
    x = value(Tensor{.dtype = DType::kF32, .max = {4, 8}});
    index = value(std::move(indices));
    y = value(Tensor{.dtype = DType::kF32, .max = {3, 8}});
    graph::Node n;
    n.spelling = "aten.index_select.default";
    n.op = ops::lookup().find(n.spelling);
    n.args = {x, value(int64_t{0}), index, y};
    g.nodes.push_back(std::move(n));
    g.method = "forward";
    g.inputs = {x};
    if (!constant) g.inputs.push_back(index);
    g.outputs = {y};
  }
};

struct Loaded {
  ConstantPool constants;
  Result<std::unique_ptr<Method>> method = invalid_argument("not loaded");

  Loaded(graph::Graph g, std::vector<SourcePtr> sources) : constants(device(), std::move(sources)) {
    const auto context = make_context(device()->caps(), "");
    if (!context.ok()) std::abort();
    auto layout = make_layout(g, *context, {});
    if (!layout.ok()) {
      method = std::move(layout).status();
      return;
    }
    method =
        Method::create(std::move(g), std::move(layout).value(), device(), *context, constants, {});
  }
};

std::string error_of(const Result<std::span<const Value>>& r, Code code) {
  if (r.ok()) return "no error";
  EXPECT_EQ(r.status().code(), code);
  return std::string(r.status().message());
}

const std::vector<float> kRows(size_t{4} * 8, 1.0F);

TEST(Narrowing, OfAnInputOnItsWayToTheGpu) {
  Loaded loaded(Choice(Tensor{.dtype = DType::kI64, .max = {3}}).g, {});
  ASSERT_TRUE(loaded.method.ok()) << loaded.method.status().message();
  const std::vector<int64_t> good = {0, 3, 1};
  const std::vector<int64_t> far = {0, kFar, 1};
  const Value x = tensor<float>({4, 8}, kRows);
  const Value wrong[] = {x, tensor<int64_t>({3}, far)};
  const Value right[] = {x, tensor<int64_t>({3}, good)};
  EXPECT_TRUE((*loaded.method)->run(right).ok());
  EXPECT_EQ(error_of((*loaded.method)->run(wrong), Code::kInvalidArgument),
            "value 1: element 1 is 4294967296, which does not fit i32");
  EXPECT_TRUE((*loaded.method)->run(right).ok());
}

TEST(Narrowing, OfAnInputThatTheProgramHasInFewerBits) {
  Loaded loaded(Choice(Tensor{.dtype = DType::kI32, .max = {3}}).g, {});
  ASSERT_TRUE(loaded.method.ok()) << loaded.method.status().message();
  const std::vector<int64_t> far = {0, 2, kFar};
  const Value wrong[] = {tensor<float>({4, 8}, kRows), tensor<int64_t>({3}, far)};
  EXPECT_EQ(error_of((*loaded.method)->run(wrong), Code::kInvalidArgument),
            "input 1 of 'forward': element 2 is 4294967296, which does not fit i32");
}

TEST(Narrowing, OfAConstant) {
  for (const int64_t first : {int64_t{1}, -kFar}) {
    const std::vector<int64_t> indices = {first, 2, 3};
    const Bytes bytes = std::as_bytes(std::span(indices));
    const Loaded loaded(
        Choice(Tensor{.dtype = DType::kI64, .max = {3}, .data = {{0, 0, bytes.size()}}}).g,
        {std::make_shared<MemorySource>("indices", bytes)});
    EXPECT_EQ(loaded.method.ok(), first == 1);
    if (loaded.method.ok()) continue;
    EXPECT_EQ(loaded.method.status().code(), Code::kInvalidProgram);
    EXPECT_EQ(loaded.method.status().message(),
              "constant value 1: element 0 is -4294967296, which does not fit i32");
  }
}

}  // namespace
}  // namespace pteryx
