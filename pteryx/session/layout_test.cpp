// Layouts of graphs made by hand. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/layout.h"

#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
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
    return make_layout(g, {.caps = caps, .forced_routes = routes});
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

// Everything has a size at which the device just does not allow it, and is named then.
TEST(Layout, BuffersAreComparedWithTheLimitsOfTheDevice) {
  Draft d;
  const ValueId x = d.tensor({1, 8});
  const ValueId big = d.tensor({64, 1024});
  const ValueId w = d.value(Tensor{.dtype = DType::kU8, .max = {5, 4}, .data = {{0, 0, 20}}});
  const ValueId s = d.value(Tensor{.dtype = DType::kF32, .max = {1, 8}, .data = {{0, 4096, 32}}});
  const ValueId cache = d.value(Tensor{.dtype = DType::kF32, .max = {64, 1024}, .state = true});
  const ValueId y = d.tensor({1, 5});
  const ValueId middle = d.tensor({64, 1024});
  const ValueId z = d.tensor({64, 1024});
  d.g.inputs = {x, big};
  d.g.outputs = {y, z};
  d.call("et_vk.linear_q4gsw.default", {x, w, s, d.value(int64_t{8}), d.value(graph::Null{}), y});
  d.call("aten.relu.default", {big, middle});
  d.call("aten.add.Tensor", {middle, cache, d.value(int64_t{1}), z});
  auto layout = d.layout({{"qlinear", "gemv"}});
  ASSERT_TRUE(layout.ok()) << layout.status().message();
  const auto found = [&](const gpu::Caps& caps) {
    std::string text;
    for (const Excess& e : find_excess(d.g, *layout, caps)) text += to_string(e) + "\n";
    const Status status = check_limits(d.g, *layout, caps);
    EXPECT_EQ(status.ok(), text.empty());
    EXPECT_TRUE(status.ok() || status.code() == Code::kUnsupported);
    EXPECT_EQ(text, status.ok() ? "" : std::string(status.message()) + "\n");
    return text;
  };
  constexpr uint64_t kLarge = 64 * 1024 * 4;
  gpu::Caps caps;
  caps.max_buffer_bytes = 2 * kLarge;
  caps.max_binding_bytes = kLarge;
  EXPECT_EQ(found(caps), "");
  caps.max_binding_bytes = kLarge - 1;
  const std::string_view sizes =
      "export or convert it with smaller upper bounds, such as fewer tokens a call";
  const auto large = [&](std::string_view what, std::string_view limit, std::string_view remedy) {
    return fmt::format("{}, f32 [64, 1024]: 262144 bytes, {} of the device is 262143; {}\n", what,
                       limit, remedy);
  };
  for (const std::string_view limit : {"max_binding_bytes", "max_buffer_bytes"}) {
    if (limit == "max_buffer_bytes") caps.max_buffer_bytes = kLarge - 1;
    const std::string all =
        large("value 1", limit, sizes) +
        large(
            "state value 4", limit,
            "export or convert it with a shorter context, or with an f16 KV cache where it is one "
            "of f32") +
        large("value 6", limit, sizes) + large("value 7", limit, sizes);
    EXPECT_EQ(found(caps).substr(0, all.size()), all);
  }
  EXPECT_NE(found(caps).find("results that are read back: 262176 bytes, max_buffer_bytes"),
            std::string::npos);
  for (Root& r : layout->roots) r.gpu_bytes = std::min<uint64_t>(r.gpu_bytes, 32);
  layout->readback_bytes = 16;
  caps.max_buffer_bytes = caps.max_binding_bytes = 79;
  layout->inbox_bytes = 79;
  EXPECT_NE(found(caps).find("weight value 2, rows of 4 bytes in 16: 80 bytes"), std::string::npos);
  layout->plans[0]->constants.clear();
  layout->plans[0]->scratch_bytes = {10, 80};
  EXPECT_EQ(found(caps).find("a temporary of et_vk.linear_q4gsw.default (instruction 0): 80 bytes"),
            0U)
      << found(caps);
  EXPECT_EQ(std::string(check_plan(d.g, d.g.nodes[0], *layout->plans[0], caps).message())
                .find("a temporary of et_vk.linear_q4gsw.default"),
            0U);
  layout->plans[0]->scratch_bytes.clear();
  EXPECT_EQ(found(caps).find("parameters of shaders: "), 0U);
  caps.max_buffer_bytes = 1024;
  EXPECT_EQ(found(caps), "");
  layout->inbox_bytes = 1025;
  EXPECT_EQ(found(caps),
            "scalars and small inputs: 1025 bytes, max_buffer_bytes of the device is 1024\n");
  layout->inbox_bytes = 16;
  caps.max_storage_buffers = 3;
  EXPECT_NE(found(caps).find("of et_vk.linear_q4gsw.default (instruction 0): 4 buffers, "
                             "max_storage_buffers of the device is 3\n"),
            std::string::npos)
      << found(caps);
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
