// Kernels with subgroup matrices are compiled everywhere; where the GPU has such matrices, the
// tests of the operators run them.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/subgroup_matrix.h"

#include <tuple>

#include <gtest/gtest.h>

#include "pteryx/gpu/device.h"
#include "pteryx/ops/testing/attention_calls.h"
#include "pteryx/ops/testing/large_gpu.h"
#include "pteryx/ops/testing/op_runner.h"

namespace pteryx::ops::testing {
namespace {

// Compiles for an adapter that runs nothing. Its limits are the smallest allowed: of a text without
// fault it says that it needs too much workgroup memory.
void expect_compiles(const Case& c, const std::vector<std::string>& routes = {
                                        "matrix", "matrix_small", "matrix_few"}) {
  static const auto device = gpu::open_device({.adapter = "null", .provider = "dawn"});
  ASSERT_TRUE(device.ok()) << device.status().message();
  gpu::Caps caps = (*device)->caps();
  ASSERT_TRUE(caps.subgroup_matrix);
  caps.subgroup_min = caps.subgroup_max = 32;
  caps.max_workgroup_bytes = 49152;
  for (const std::string& route : routes) {
    for (const bool checks : {true, false}) {
      caps.bounds_checks = checks;
      const Status s = compile(c, **device, caps, route);
      EXPECT_NE(s.message().find("total use of workgroup storage"), std::string_view::npos)
          << c.op() << ", route " << route << ": " << s.message();
    }
  }
}

TEST(SubgroupMatrix, CompilesForQuantisedWeights) {
  for (const int64_t group : {32, 8, 3}) {
    for (const DType t : {DType::kF32, DType::kF16}) {
      Case c("et_vk.linear_q4gsw.default");
      c.in(random(t, {20, 96}))
          .constant(random(DType::kU8, {33, 48}, 2, 0, 255))
          .in(random(t, {96 / group, 36}))
          .integer(group)
          .in(random(t, {36}));
      expect_compiles(c.out(t, {20, 33}));
    }
  }
  expect_compiles(Case("et_vk.linear_qcs4w.default")
                      .in(random(DType::kF32, {20, 7}))
                      .constant(random(DType::kU8, {5, 4}, 2, 0, 255))
                      .in(random(DType::kF32, {5}))
                      .out(DType::kF32, {20, 5}));
  expect_compiles(Case("aten._weight_int8pack_mm.default")
                      .in(random(DType::kF32, {20, 1024}))
                      .constant(random(DType::kI8, {5, 1024}, 2, -9, 9))
                      .in(random(DType::kF32, {5}))
                      .out(DType::kF32, {20, 5}));
}

TEST(SubgroupMatrix, CompilesForPlainWeights) {
  for (const DType t : {DType::kF32, DType::kF16}) {
    for (const int64_t k : {128, 7}) {
      expect_compiles(Case("aten.linear.default")
                          .in(random(t, {20, k}))
                          .in(random(t, {33, k}))
                          .in(random(t, {33}))
                          .out(t, {20, 33}));
      expect_compiles(
          Case("aten.mm.default").in(random(t, {20, k})).in(random(t, {k, 40})).out(t, {20, 40}));
      expect_compiles(
          Case("aten.mm.default").in(random(t, {20, k})).in(random(t, {k, 33})).out(t, {20, 33}));
    }
  }
}

TEST(SubgroupMatrix, CompilesForAttention) {
  for (const DType t : {DType::kF32, DType::kF16}) {
    for (const int64_t d : {16, 36, 64, 72, 128, 256}) {
      expect_compiles(CachedCall({2, 1, d, 40, 20, 3}, t, DType::kF16).causal_call(), {"matrix"});
    }
    expect_compiles(CachedCall({2, 1, 64, 40, 20, 3}, t, DType::kF32).causal_call(), {"matrix"});
    const TestTensor q = random(t, {2, 20, 32});
    expect_compiles(
        Case("et_vk.sdpa.default").in(q).in(q).in(q).in(random(t, {20, 20})).none().out(t, q.dims),
        {"matrix"});
  }
}

// The storage buffers that a plan for a large GPU stores matrices to or loads them from; "" for
// none.
std::string matrices_in_buffers(const Case& c, const std::string& route, bool checks) {
  EXPECT_TRUE(gpu::Caps().bounds_checks);  // of what nothing is known of
  gpu::Caps caps = large_gpu();
  caps.bounds_checks = checks;
  const auto planned = plan_of(c, {.caps = caps, .precision = Precision::kF16}, route);
  EXPECT_TRUE(planned.ok()) << planned.status().message();
  if (!planned.ok()) return "no plan";
  std::string buffers;
  int kernels = 0;
  for (const PlannedDispatch& d : *planned) {
    if (!d.subgroup_matrix) continue;
    ++kernels;
    for (size_t at = 0; (at = d.code.find("subgroupMatrix", at)) != std::string::npos; ++at) {
      const size_t amp = d.code.find('&', at);
      if (d.code.compare(at, 23, "subgroupMatrixMultiplyA") == 0) continue;
      const std::string to = d.code.substr(amp + 1, d.code.find_first_of("[,", amp) - amp - 1);
      if (to.starts_with("tile_") || buffers.find(to + " ") != std::string::npos) continue;
      buffers += to + " ";
    }
  }
  EXPECT_EQ(kernels, 1) << c.op();
  return buffers;
}

// Checks of such accesses cost more than the way through workgroup memory.
TEST(SubgroupMatrix, WithBoundsChecksNoMatrixMeetsABuffer) {
  const auto linear = [](int64_t m, int64_t k, const std::vector<int64_t>& widths, bool residual,
                         bool gated) {
    int64_t n = 0;
    std::vector<TestTensor> outs;
    for (const int64_t w : widths) {
      n += w * (gated ? 2 : 1);
      outs.push_back({DType::kF32, {m, w}, {}});
    }
    Case c("pteryx.linear_q4gsw");
    c.in({DType::kF32, {m, k}, {}})
        .none()
        .none()
        .constant({DType::kU8, {n, k / 2}, {}})
        .in({DType::kF16, {k / 32, n}, {}})
        .integer(32)
        .none()
        .none();
    residual ? c.in({DType::kF32, {m, n}, {}}) : c.none();
    gated ? c.flag(true) : c.none();
    return c.none().ints(widths).outs(outs);
  };
  const auto product = [](int64_t m, int64_t n, int64_t k) {
    return Case("aten.mm.default")
        .in({DType::kF32, {m, k}, {}})
        .in({DType::kF32, {k, n}, {}})
        .out(DType::kF32, {m, n});
  };
  const Case conv = Case("aten.convolution.default")
                        .in({DType::kF32, {1, 256, 14, 14}, {}})
                        .constant({DType::kF32, {256, 256, 3, 3}, {}})
                        .none()
                        .ints({1})
                        .ints({1})
                        .ints({1})
                        .flag(false)
                        .ints({0})
                        .integer(1)
                        .out(DType::kF32, {1, 256, 14, 14});
  const std::vector<std::tuple<Case, std::string, std::string>> cases = {
      {linear(512, 8192, {2048}, true, false), "matrix", "y "},            // parts
      {linear(2048, 2048, {2048}, true, false), "matrix", "residual y "},  // whole
      {linear(2048, 2048, {2048, 512, 512}, false, false), "matrix", "y y1 y2 "},
      {linear(128, 2048, {2048}, false, false), "matrix_small", "y "},  // parts
      {linear(512, 2048, {8192}, false, true), "matrix", ""},           // gated
      {linear(16, 2048, {8192}, false, true), "matrix_few", "y "},      // its parts
      {product(512, 2048, 2048), "matrix", "y "},                       // parts
      {product(2048, 2048, 2048), "matrix", "y "},                      // whole
      {product(20, 33, 64), "matrix_few", ""},                          // one by one
      {conv, "matrix", "y "},                                           // parts
      {conv, "matrix_halves", "y "},
  };
  for (const auto& [c, route, without] : cases) {
    SCOPED_TRACE(c.op() + ", route " + route);
    EXPECT_EQ(matrices_in_buffers(c, route, true), "");
    EXPECT_EQ(matrices_in_buffers(c, route, false), without);
  }
}

TEST(SubgroupMatrix, PlansAsMeasured) {
  gpu::Caps caps;
  caps.max_workgroup_bytes = 49152;
  caps.sizes = {.processors = 132, .invocations = 2048};
  const auto plan = [&](int64_t m, int64_t n, int64_t k) {
    const MatrixProduct d{1, m, n, k};
    for (const MatrixSize size : {MatrixSize::kLarge, MatrixSize::kSmall, MatrixSize::kFew}) {
      if (!suits_matrix(size, d, caps)) continue;
      const MatrixPlan p = plan_matrix(size, d, caps);
      EXPECT_GE(p.row(), k);
      EXPECT_LT(p.row() - k, p.tile.depth);
      return p.tile.name() + "/" + std::to_string(p.splits);
    }
    return std::string();
  };
  EXPECT_EQ(plan(512, 16384, 2048), "128x128x64/1");
  EXPECT_EQ(plan(512, 2048, 2048), "128x128x64/2");
  EXPECT_EQ(plan(512, 2048, 8192), "128x128x64/2");
  EXPECT_EQ(plan(512, 3072, 2048), "128x128x64/1");
  EXPECT_EQ(plan(2048, 2048, 8192), "128x128x64/1");
  EXPECT_EQ(plan(128, 2048, 2048), "64x64x64/4");
  EXPECT_EQ(plan(128, 2048, 8192), "128x128x64/8");
  EXPECT_EQ(plan(128, 3072, 2048), "128x128x64/4");
  EXPECT_EQ(plan(16, 16384, 2048), "16x128x64/2");
  EXPECT_EQ(plan(16, 2048, 2048), "16x64x128/8");
  EXPECT_EQ(plan(16, 2048, 8192), "16x128x64/16");
  EXPECT_EQ(plan(33, 2048, 8192), "48x128x64/16");
  EXPECT_EQ(plan(64, 16384, 2048), "64x128x64/2");
  EXPECT_EQ(plan(9, 33, 64), "16x64x64/1");
  caps.max_workgroup_bytes = 32768;
  EXPECT_EQ(plan(512, 16384, 2048), "128x128x32/1");
}

}  // namespace
}  // namespace pteryx::ops::testing
