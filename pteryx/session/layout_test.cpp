// Layouts of graphs made by hand. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/layout.h"

#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/session/limits.h"
#include "pteryx/session/testing/graphs.h"

namespace pteryx {
namespace {

using graph::LiveScalar;
using graph::Tensor;
using graph::ValueId;

struct Draft : testing::GraphDraft {
  ValueId state(const Dims& dims) {
    return value(Tensor{.dtype = DType::kF32, .max = dims, .state = true});
  }
  using Routes = std::vector<std::pair<std::string, std::string>>;
  Result<Layout> layout(const Routes& routes = {}) const {
    gpu::Caps caps;
    caps.max_buffer_bytes = caps.max_binding_bytes = 1U << 30;
    return make_layout(g, {.caps = caps, .forced_routes = routes}, {});
  }
};

TEST(Layout, AScalarIsReadFromTheInputItIsACopyOf) {
  Draft d;
  const ValueId x = d.tensor({1});
  const ValueId copy = d.tensor({1});
  const ValueId scalar = d.value(LiveScalar{});
  d.g.inputs = {x};
  d.call(graph::kCopyOp, {x, copy});
  d.call(graph::kItemOp, {copy, scalar});
  const auto layout = d.layout();
  ASSERT_TRUE(layout.ok()) << layout.status().message();
  EXPECT_EQ(layout->item_source[1], layout->root_of[graph::index(x)]);
  EXPECT_EQ(layout->blocks.size(), 1U);
}

// What a copy holds is that of its writer so far, not of its last one.
TEST(Layout, AScalarIsNotReadFromAnInputThatIsCopiedLater) {
  Draft d;
  const ValueId x = d.tensor({1});
  const ValueId y = d.tensor({1});
  const ValueId copy = d.tensor({1});
  const ValueId scalar = d.value(LiveScalar{});
  d.g.inputs = {x, y};
  d.call(graph::kCopyOp, {x, copy});
  d.call(graph::kItemOp, {copy, scalar});
  d.call(graph::kCopyOp, {y, copy});
  const auto layout = d.layout();
  ASSERT_TRUE(layout.ok()) << layout.status().message();
  EXPECT_NE(layout->item_source[1], layout->root_of[graph::index(y)]);
}

TEST(Layout, CopiesInACircleComeToAnEnd) {
  Draft d;
  const ValueId x = d.state({1});
  const ValueId y = d.tensor({1});
  const ValueId scalar = d.value(LiveScalar{});
  d.call(graph::kCopyOp, {x, y});
  d.call(graph::kCopyOp, {y, x});
  d.call(graph::kItemOp, {x, scalar});
  const auto layout = d.layout();
  ASSERT_TRUE(layout.ok()) << layout.status().message();
  EXPECT_EQ(layout->item_source[2], layout->root_of[graph::index(x)]);
}

// Rows of 4 bytes are laid out anew in vectors of 16; two nodes share the result.
TEST(Layout, AConstantInAnotherLayoutCountsOnce) {
  const std::vector<std::byte> codes(size_t{5} * 4);
  const std::vector<std::byte> numbers(size_t{8} * 4);
  const auto constants = [&](int nodes, std::string_view route) {
    Draft d;
    const ValueId x = d.tensor({1, 8});
    const ValueId w =
        d.value(Tensor{.dtype = DType::kU8, .max = {5, 4}, .data = {{0, 0, codes.size()}}});
    const ValueId s =
        d.value(Tensor{.dtype = DType::kF32, .max = {1, 8}, .data = {{0, 4096, numbers.size()}}});
    const ValueId group = d.value(int64_t{8});
    d.g.inputs = {x};
    for (int i = 0; i < nodes; ++i) {
      const ValueId none = d.value(graph::Null{});
      d.call("et_vk.linear_q4gsw.default", {x, w, s, group, none, d.tensor({1, 5})});
    }
    const auto layout = d.layout({{"qlinear", std::string(route)}});
    EXPECT_TRUE(layout.ok());
    return layout.ok() ? layout->memory.constants : 0;
  };
  EXPECT_EQ(constants(1, "gemv"), constants(1, "naive") + 5 * 16);
  EXPECT_EQ(constants(2, "gemv"), constants(1, "gemv"));
}

// Every buffer has a size at which the device just does not allow it, and is named then.
TEST(Layout, BuffersAreComparedWithTheLimitsOfTheDevice) {
  Draft d;
  const ValueId x = d.tensor({1, 8});
  const ValueId big = d.tensor({64, 1024});
  const ValueId w = d.value(Tensor{.dtype = DType::kU8, .max = {5, 4}, .data = {{0, 0, 20}}});
  const ValueId s = d.value(Tensor{.dtype = DType::kF32, .max = {1, 8}, .data = {{0, 4096, 32}}});
  const ValueId y = d.tensor({1, 5});
  const ValueId middle = d.tensor({64, 1024});
  const ValueId z = d.tensor({64, 1024});
  d.g.inputs = {x, big};
  d.g.outputs = {y, z};
  d.call("et_vk.linear_q4gsw.default", {x, w, s, d.value(int64_t{8}), d.value(graph::Null{}), y});
  d.call("aten.relu.default", {big, middle});
  d.call("aten.relu.default", {middle, z});
  auto layout = d.layout({{"qlinear", "gemv"}});
  ASSERT_TRUE(layout.ok()) << layout.status().message();
  const auto error = [&](uint64_t buffer, uint64_t binding) {
    gpu::Caps caps;
    caps.max_buffer_bytes = buffer;
    caps.max_binding_bytes = binding;
    const Status status = check_limits(d.g, *layout, caps);
    EXPECT_TRUE(status.ok() || status.code() == Code::kMemory);
    return std::string(status.message());
  };
  constexpr uint64_t kLarge = 64 * 1024 * 4;
  EXPECT_EQ(error(2 * kLarge, kLarge), "");
  EXPECT_EQ(error(2 * kLarge, kLarge - 1),
            "buffer 'value 1' of 262144 bytes: the device binds 262143 bytes at most");
  EXPECT_EQ(error(kLarge - 1, kLarge - 1),
            "buffer 'value 1' of 262144 bytes: the device allows 262143 bytes");
  EXPECT_EQ(error(kLarge, kLarge).find("buffer 'readback' of "), 0U);  // y as well
  layout->roots[layout->root_of[graph::index(big)]].gpu_bytes = 16;
  EXPECT_EQ(error(kLarge - 1, kLarge).find("buffer 'slot "), 0U);
  for (uint64_t& bytes : layout->slot_bytes) bytes = 16;
  layout->scratch_bytes = {100, 4000};
  EXPECT_EQ(error(3999, 3999).find("buffer 'scratch 1' of 4000 bytes"), 0U);
  layout->scratch_bytes.clear();
  ASSERT_EQ(layout->relaid.size(), 1U);
  EXPECT_EQ(error(79, 79).find("buffer 'value 2, "), 0U);
  layout->relaid.clear();
  layout->readback_bytes = 16;
  layout->inbox_bytes = 800;
  EXPECT_EQ(error(799, 799),
            "buffer 'scalars and inputs' of 800 bytes: the device allows 799 bytes");
}

// In a run the caller would be to blame for sizes that do not go together.
TEST(Layout, WrongSizesAreTheFilesFault) {
  Draft d;
  const ValueId x = d.tensor({3});
  const ValueId y = d.tensor({4});
  d.g.inputs = {x, y};
  d.call("aten.add.Tensor", {x, y, d.value(int64_t{1}), d.tensor({4})});
  const auto layout = d.layout();
  ASSERT_FALSE(layout.ok());
  EXPECT_EQ(layout.status().code(), Code::kInvalidProgram);
  EXPECT_NE(layout.status().message().find("a [3] and b [4] do not broadcast"),
            std::string_view::npos)
      << layout.status().message();
}

}  // namespace
}  // namespace pteryx
