// What was told of memory on the CPU before anything was allocated holds for whatever runs then.
// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/gpu/cpu_device.h"
#include "pteryx/session/testing/graphs.h"

namespace pteryx {
namespace {

using graph::IntList;
using graph::Tensor;
using graph::ValueId;

struct Draft : testing::GraphDraft {
  // Of an image of any size up to this.
  ValueId image(const Dims& most) {
    g.inputs.push_back(value(Tensor{.dtype = DType::kF32, .max = most, .dynamic = true}));
    return g.inputs.back();
  }
  void result(std::string_view op, std::vector<ValueId> args, const Dims& dims) {
    args.push_back(tensor(dims));
    call(op, args);
    g.outputs.push_back(args.back());
  }
  ValueId ints(std::vector<int64_t> items) { return value(IntList{std::move(items)}); }
};

// Runs it with images of ones, of these heights and widths.
void expect_no_growth(testing::LoadedGraph& loaded,
                      const std::vector<std::pair<int64_t, int64_t>>& images) {
  EXPECT_EQ(loaded.held_bytes(), loaded.scratch_bytes());
  for (const auto& [height, width] : images) {
    const std::vector<float> x(static_cast<size_t>(height * width), 1.0F);
    const Value inputs[] = {tensor<float>({1, 1, height, width}, x)};
    const auto outputs = loaded.run(inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    const TensorView& y = *outputs->front().tensor();
    EXPECT_GT(y.as<float>()[static_cast<size_t>(numel(y.dims) / 2)], 0.0F);
    EXPECT_EQ(loaded.held_bytes(), loaded.scratch_bytes()) << height << " x " << width;
  }
}

// Products of a transposed convolution are held up to a limit, which the largest image exceeds.
TEST(CpuMemory, OfATransposedConvolutionIsThatOfTheImageThatTakesMost) {
  constexpr int64_t kHeight = 1024;
  constexpr int64_t kWidth = 1100;
  const std::vector<float> weight(size_t{2} * 4 * 4, 0.25F);
  Draft d;
  const ValueId x = d.image({1, 1, kHeight, kWidth});
  const ValueId w = d.value(Tensor{
      .dtype = DType::kF32, .max = {1, 2, 4, 4}, .data = {{0, 0, weight.size() * sizeof(float)}}});
  d.result("aten.convolution.default",
           {x, w, d.value(graph::Null{}), d.ints({1, 1}), d.ints({0, 0}), d.ints({1, 1}),
            d.value(true), d.ints({0, 0}), d.value(int64_t{1})},
           {1, 2, kHeight + 3, kWidth + 3});
  testing::LoadedGraph loaded(
      std::move(d.g), {std::make_shared<MemorySource>("weight", std::as_bytes(std::span(weight)))},
      "", gpu::cpu_device());
  ASSERT_TRUE(loaded.status().ok()) << loaded.status().message();
  EXPECT_GE(loaded.scratch_bytes(), uint64_t{64} << 20U);
  expect_no_growth(loaded, {{100, 100}, {512, 1000}, {1000, 1000}, {kHeight, kWidth}, {7, 9}});
}

// A channel has 2^64 products, which is 0 in 64 bits.
TEST(CpuMemory, OfATransposedConvolutionIsKnownForAnySizes) {
  constexpr int64_t kSize = 65536;
  Draft d;
  const ValueId x = d.image({1, 1, kSize, kSize});
  const ValueId w = d.image({1, 1, kSize, kSize});
  d.result("aten.convolution.default",
           {x, w, d.value(graph::Null{}), d.ints({1, 1}), d.ints({0, 0}), d.ints({1, 1}),
            d.value(true), d.ints({0, 0}), d.value(int64_t{1})},
           {1, 1, 2 * kSize - 1, 2 * kSize - 1});
  const auto context = make_context(gpu::cpu_device()->caps(), "");
  ASSERT_TRUE(context.ok()) << context.status().message();
  const auto layout = make_layout(d.g, *context);
  ASSERT_TRUE(layout.ok()) << layout.status().message();
  const uint64_t weight = uint64_t{kSize} * kSize * sizeof(float);
  EXPECT_GE(host_scratch_bytes(d.g, *layout, *cpu::shared_pool(2), Precision::kF32), weight);
}

// Windows of one size fit some images and not the largest.
TEST(CpuMemory, KernelsThatWouldTakeMoreForLessAreLeftOut) {
  Draft d;
  const ValueId x = d.image({1, 1, 33, 33});
  d.result("aten._adaptive_avg_pool2d.default", {x, d.ints({4, 4})}, {1, 1, 4, 4});
  testing::LoadedGraph loaded(std::move(d.g), {}, "", gpu::cpu_device());
  ASSERT_TRUE(loaded.status().ok()) << loaded.status().message();
  expect_no_growth(loaded, {{8, 8}, {33, 33}, {32, 16}, {9, 7}});
}

// More than there are addresses, so that no system promises it.
TEST(CpuMemory, ThatIsNotThereIsAnError) {
  Draft d;
  const Dims huge = {int64_t{1} << 50U};
  const ValueId x = d.image(huge);
  d.result("aten.relu.default", {x}, huge);
  d.result("aten.neg.default", {d.g.outputs.front()}, huge);
  d.g.outputs.erase(d.g.outputs.begin());
  testing::LoadedGraph loaded(std::move(d.g), {}, "", gpu::cpu_device());
  EXPECT_EQ(loaded.status().code(), Code::kMemory);
  EXPECT_NE(loaded.status().message().find("no memory left for 4503599627370496 bytes"),
            std::string_view::npos)
      << loaded.status().message();
}

}  // namespace
}  // namespace pteryx
