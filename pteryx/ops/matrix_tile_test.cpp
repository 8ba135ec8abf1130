// Kernels with subgroup matrices are compiled everywhere; where the GPU has such matrices, the
// tests of the operators run them.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/matrix_tile.h"

#include <gtest/gtest.h>

#include "pteryx/gpu/device.h"
#include "pteryx/ops/testing/attention_calls.h"

namespace pteryx::ops::testing {
namespace {

// Compiles for an adapter that runs nothing. Its limits are the smallest allowed: of a text without
// fault it says that it needs too much workgroup memory.
void expect_compiles(const Case& c,
                     const std::vector<std::string>& routes = {"matrix", "matrix_small"}) {
  static const auto device = gpu::open_device({.adapter = "null", .provider = "dawn"});
  ASSERT_TRUE(device.ok()) << device.status().message();
  gpu::Caps caps = (*device)->caps();
  ASSERT_TRUE(caps.subgroup_matrix);
  caps.subgroup_min = caps.subgroup_max = 32;
  caps.max_workgroup_bytes = 49152;
  for (const std::string& route : routes) {
    const Status s = compile(c, **device, caps, route);
    EXPECT_NE(s.message().find("total use of workgroup storage"), std::string_view::npos)
        << c.op() << ", route " << route << ": " << s.message();
  }
}

TEST(MatrixTile, CompilesForQuantisedWeights) {
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

TEST(MatrixTile, CompilesForPlainWeights) {
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

TEST(MatrixTile, CompilesForAttention) {
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

TEST(MatrixTile, CutsKWhereTilesAreFew) {
  EXPECT_EQ(matrix_tiles(128, 1, 512, 2048, 2048).splits, 2);
  EXPECT_EQ(matrix_tiles(128, 1, 512, 16384, 2048).splits, 1);
  EXPECT_EQ(matrix_tiles(64, 1, 9, 33, 64).splits, 1);
  for (const int64_t k : {512, 1000, 2048, 8192}) {
    const MatrixTiles t = matrix_tiles(64, 1, 16, 64, k);
    EXPECT_EQ(t.chunk % 64, 0) << k;
    EXPECT_GE(t.chunk * t.splits, k);
  }
}

}  // namespace
}  // namespace pteryx::ops::testing
