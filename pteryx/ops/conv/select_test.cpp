// Which kernels convolutions of known networks take, on a GPU with and without subgroup matrices.
// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/gpu/device.h"
#include "pteryx/ops/testing/large_gpu.h"
#include "pteryx/ops/testing/op_runner.h"

namespace pteryx::ops::testing {
namespace {

struct Layer {
  int64_t in, out, kernel, stride, size;  // of the input
  int64_t groups;
  std::vector<std::string> f32;  // names and variants of its dispatches
  std::vector<std::string> f16;
};

// "conv_tile/f32,f32,f32/large" -> "conv_tile large"
std::string kernel_of(const std::string& label) {
  const size_t first = label.find('/');
  const size_t last = label.rfind('/');
  return label.substr(0, first) + (first == last ? "" : " " + label.substr(last + 1));
}

Case call_of(const Layer& l) {
  const int64_t size = (l.size + 2 * (l.kernel / 2) - l.kernel) / l.stride + 1;
  Case c("aten.convolution.default");
  c.in({DType::kF32, {1, l.in, l.size, l.size}, {}})
      .constant({DType::kF32, {l.out, l.in / l.groups, l.kernel, l.kernel}, {}})
      .none()
      .ints({l.stride})
      .ints({l.kernel / 2})
      .ints({1})
      .flag(false)
      .ints({0})
      .integer(l.groups);
  return c.out(DType::kF32, {1, l.out, size, size});
}

void expect_kernels(const Layer& l, Precision precision, const std::vector<std::string>& want) {
  SCOPED_TRACE(fmt::format("{} -> {}, {}x{} at {}x{}, groups {}, {}", l.in, l.out, l.kernel,
                           l.kernel, l.size, l.size, l.groups,
                           precision == Precision::kF16 ? "f16" : "f32"));
  const auto planned = plan_of(call_of(l), {.caps = large_gpu(), .precision = precision});
  ASSERT_TRUE(planned.ok()) << planned.status().message();
  std::vector<std::string> got;
  got.reserve(planned->size());
  for (const PlannedDispatch& d : *planned) got.push_back(kernel_of(d.label));
  EXPECT_EQ(got, want);
  // Products leave no large part of the GPU without work, nor give each workgroup too little.
  for (const PlannedDispatch& d : *planned) {
    if (!d.label.starts_with("conv_tile") && !d.label.starts_with("conv_matrix")) continue;
    EXPECT_GE(d.grid.x, 96U) << d.label;
    EXPECT_LE(d.grid.x, 1024U) << d.label;
  }
}

TEST(ConvSelect, TakesTheKernelsThatWereFastest) {
  const std::vector<std::string> four = {"conv_winograd_x", "conv_tile medium", "conv_winograd_y"};
  const std::vector<Layer> layers = {
      {320, 320, 3, 1, 64, 1, four, {"conv_halves", "conv_matrix tall", "conv_merge"}},
      {640, 640, 3, 1, 32, 1, four, {"conv_halves", "conv_matrix whole", "conv_merge"}},
      {1280, 1280, 3, 1, 16, 1, four, {"conv_halves", "conv_matrix whole", "conv_merge"}},
      {64, 64, 3, 1, 56, 1, four, {"conv_matrix oblong", "conv_merge"}},
      {128, 128, 3, 1, 28, 1, four, {"conv_matrix square", "conv_merge"}},
      {256,
       256,
       3,
       1,
       14,
       1,
       {"conv_tile tall", "conv_merge"},
       {"conv_matrix square", "conv_merge"}},
      {512,
       512,
       3,
       1,
       7,
       1,
       {"conv_tile medium", "conv_merge"},
       {"conv_matrix square", "conv_merge"}},
      {256,
       64,
       1,
       1,
       56,
       1,
       {"conv_tile medium", "conv_merge"},
       {"conv_matrix square", "conv_merge"}},
      {1024,
       256,
       1,
       1,
       14,
       1,
       {"conv_tile few", "conv_merge"},
       {"conv_matrix square", "conv_merge"}},
      {3, 64, 7, 2, 224, 1, {"conv_tile medium"}, {"conv_matrix shallow"}},
      {96, 96, 3, 1, 112, 96, {"conv_columns"}, {"conv_columns"}},
      {144, 144, 3, 2, 56, 144, {"conv_columns"}, {"conv_columns"}},
      {576, 576, 5, 1, 14, 576, {"conv_columns"}, {"conv_columns"}},
  };
  for (const Layer& l : layers) {
    expect_kernels(l, Precision::kF32, l.f32);
    expect_kernels(l, Precision::kF16, l.f16);
  }
}

// Tiles of small images are split so that no processor has a workgroup more than the others.
TEST(ConvSelect, SmallImagesFillTheGpu) {
  const auto workgroups = [](const Layer& l) {
    const auto planned = plan_of(call_of(l), {.caps = large_gpu()});
    return planned.ok() ? planned->front().grid.x : 0U;
  };
  EXPECT_EQ(workgroups({256, 256, 3, 1, 14, 1, {}, {}}), 8U * 16);
  EXPECT_EQ(workgroups({256, 256, 3, 2, 28, 1, {}, {}}), 8U * 16);
  EXPECT_EQ(workgroups({1024, 256, 1, 1, 14, 1, {}, {}}), 16U * 16);
}

// Also tiles that software GPUs have too little workgroup memory for. The adapter runs nothing; of
// a text without fault it may say that it needs too much of it.
TEST(ConvSelect, SubgroupMatricesCompile) {
  const auto device = gpu::open_device({.adapter = "null", .provider = "dawn"});
  ASSERT_TRUE(device.ok()) << device.status().message();
  ASSERT_TRUE((*device)->caps().subgroup_matrix);
  const std::vector<Layer> layers = {{64, 35, 3, 1, 9, 1, {}, {}},      // square
                                     {20, 35, 3, 1, 9, 1, {}, {}},      // shallow
                                     {9, 3, 8, 1, 46, 1, {}, {}},       // wide
                                     {28, 120, 1, 1, 51, 1, {}, {}},    // large
                                     {64, 120, 1, 1, 51, 1, {}, {}},    // deep
                                     {640, 640, 3, 1, 32, 1, {}, {}}};  // deep, split
  for (const Layer& l : layers) {
    const Status s = compile(call_of(l), **device, large_gpu(), "matrix");
    EXPECT_TRUE(s.ok() || s.message().find("total use of workgroup storage") != std::string::npos)
        << l.in << " -> " << l.out << ": " << s.message();
  }
}

}  // namespace
}  // namespace pteryx::ops::testing
