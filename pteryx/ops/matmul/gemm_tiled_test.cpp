// Every tile of matrix products against a plain reference, and which of them networks take.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/gpu/device.h"
#include "pteryx/ops/testing/large_gpu.h"
#include "pteryx/ops/testing/op_harness.h"
#include "pteryx/ops/testing/op_runner.h"

namespace pteryx::ops::testing {
namespace {

size_t at(int64_t i) { return static_cast<size_t>(i); }

// Those of the tiles that fit the device of the tests.
std::vector<std::string> tile_routes(const Case& c) {
  const auto routes = gpu_routes(c);
  EXPECT_TRUE(routes.ok()) << routes.status().message();
  std::vector<std::string> tiled;
  for (const std::string& r : *routes)
    if (r.starts_with("tiled")) tiled.push_back(r);
  EXPECT_EQ(tiled.size(), 8U);
  return tiled;
}

// What comes around a product x weight^T.
struct Around {
  std::string activation;  // "", "relu", "gelu"
  bool bias = false;
  bool scale = false;
  bool residual = false;
  bool transposed = false;
};

double activated(const std::string& activation, double v) {
  if (activation == "relu") return std::max(v, 0.0);
  if (activation == "gelu") return 0.5 * v * (1 + std::erf(v * std::sqrt(0.5)));
  return v;
}

// The product of the first rows of operands that are made once, for as many rows as are asked for.
struct Layer {
  DType t;
  int64_t most_m, n, k;
  Around around;
  TestTensor x = random(t, {most_m, k}, 1, -1, 1);
  TestTensor w = random(t, {n, k}, 2, -1, 1);
  TestTensor bias = random(t, {n}, 3);
  TestTensor scale = random(t, {n}, 4);
  std::vector<double> sums = [&] {
    std::vector<double> all(at(most_m * n));
    for (int64_t i = 0; i < most_m * n; ++i) {
      for (int64_t j = 0; j < k; ++j)
        all[at(i)] += x.data[at(i / n * k + j)] * w.data[at(i % n * k + j)];
    }
    return all;
  }();

  void check(int64_t m, const std::vector<std::string>& routes) const {
    const Dims yd = around.transposed ? Dims{n, m} : Dims{m, n};
    const TestTensor residual = random(t, yd, 5);
    const TestTensor want = make(t, yd, [&](int64_t i) {
      const int64_t row = around.transposed ? i % m : i / n;
      const int64_t column = around.transposed ? i / m : i % n;
      double v = sums[at(row * n + column)];
      if (around.bias) v += bias.data[at(column)];
      v = activated(around.activation, v);
      if (around.scale) v *= scale.data[at(column)];
      return around.residual ? v + residual.data[at(i)] : v;
    });
    TestTensor rows{t, {m, k}, {x.data.begin(), x.data.begin() + m * k}};
    Case c("pteryx.dense");
    c.in(rows).in(w);
    around.bias ? c.in(bias) : c.none();
    around.activation.empty() ? c.none() : c.text(around.activation);
    around.scale ? c.in(scale) : c.none();
    around.residual ? c.in(residual) : c.none();
    around.transposed ? c.integer(1) : c.none();
    c.out(t, yd);
    const double loose = 3e-3 * std::sqrt(static_cast<double>(k) / 64 + 1);
    const Tolerance within = t == DType::kF16 ? Tolerance{loose, 1e-2} : Tolerance{2e-4, 2e-4};
    for (const std::string& r : routes.empty() ? tile_routes(c) : routes) {
      SCOPED_TRACE(fmt::format("{} rows", m));
      expect_route(c, r, {want}, within, nullptr);
    }
  }
};

// Rows around the ends of tiles; n and k are odd, so that neither ends with a tile.
TEST(MatMulTiles, AnyNumberOfRows) {
  const Layer layer{DType::kF32, 260, 517, 67, {.bias = true}};
  for (const int64_t m : {33, 39, 40, 41, 56, 57, 64, 65, 80, 129, 197, 260}) layer.check(m, {});
}

TEST(MatMulTiles, CutsOfK) {
  Layer{DType::kF32, 57, 388, 1044, {}}.check(57, {});
  Layer{DType::kF32, 49, 388, 524, {.activation = "relu", .bias = true, .residual = true}}.check(
      49, {"tiled_small", "tiled_40x128", "tiled_56x96_teams"});
}

TEST(MatMulTiles, WhatComesAround) {
  const Around all{.activation = "gelu", .bias = true, .scale = true, .residual = true};
  Layer{DType::kF32, 197, 132, 100, all}.check(197, {});
  Around turned = all;
  turned.transposed = true;
  Layer{DType::kF32, 197, 132, 100, turned}.check(197, {"tiled_56x96_teams", "tiled_40x128"});
  Layer{DType::kF16, 197, 132, 100, all}.check(197, {"tiled_40x64_teams", "tiled_56x96_teams"});
  Layer{DType::kF16, 197, 133, 70, all}.check(197, {"tiled_40x64_teams"});
}

// f16 is fetched as it is, four at a time or one by one.
TEST(MatMulTiles, HalfPrecision) {
  Layer{DType::kF16, 197, 132, 100, {.bias = true}}.check(197, {});
  Layer{DType::kF16, 57, 388, 1044, {}}.check(57, {"tiled_small", "tiled_56x128"});
  Layer{DType::kF16, 129, 131, 70, {}}.check(129, {"tiled_small", "tiled_40x128"});
}

// b as [batch, k, n].
void check_batches(DType t, int64_t n, int64_t k) {
  constexpr int64_t kM = 113;
  const TestTensor a = random(t, {2, kM, k}, 6, -1, 1);
  const TestTensor b = random(t, {2, k, n}, 7, -1, 1);
  const TestTensor want = make(t, {2, kM, n}, [&](int64_t i) {
    double sum = 0;
    const int64_t row = i / n;
    for (int64_t j = 0; j < k; ++j)
      sum += a.data[at(row * k + j)] * b.data[at((row / kM * k + j) * n + i % n)];
    return sum;
  });
  Case c("aten.bmm.default");
  c.in(a).in(b).out(t, want.dims);
  const Tolerance within = t == DType::kF16 ? Tolerance{1e-2, 1e-2} : Tolerance{1e-4, 1e-4};
  for (const std::string& r : tile_routes(c)) expect_route(c, r, {want}, within, nullptr);
}

TEST(MatMulTiles, Batches) {
  check_batches(DType::kF32, 150, 70);
  check_batches(DType::kF16, 148, 72);
}

// ---------------------------------------------------------------- choice

struct Product {
  int64_t m, n, k;
  std::string want;  // tile, workgroups, and whether k is cut into parts
};

// As on an H200, where these networks were fastest.
TEST(MatMulTiles, FillTheGpu) {
  const std::vector<Product> products = {
      {197, 2304, 768, "40x128 360, merged"},
      {197, 768, 768, "56x96_teams 128, merged"},
      {197, 3072, 768, "56x128 384, merged"},
      {197, 768, 3072, "56x128 384, merged"},
      {3136, 384, 96, "40x128 237"},
      {3136, 96, 384, "56x96_teams 112, merged"},
      {784, 768, 192, "56x96_teams 112"},
      {784, 192, 768, "64x64 234, merged"},
      {196, 1536, 384, "40x64_teams 120"},
      {196, 384, 1536, "64x64 264, merged"},
      {49, 3072, 768, "56x96_teams 128, merged"},
      {49, 768, 3072, "56x96_teams 128, merged"},
      {512, 2048, 2048, "64x128 384, merged"},
      {4096, 320, 320, "64x64 320"},
      {4096, 2560, 320, "128x128 640"},
      {1024, 640, 640, "56x128 380, merged"},
      {1024, 5120, 640, "64x128 640"},
      {2048, 2048, 2048, "128x128 256"},
  };
  for (const Product& each : products) {
    Case c("aten.linear.default");
    c.in({DType::kF32, {each.m, each.k}, {}}).constant({DType::kF32, {each.n, each.k}, {}}).none();
    const auto planned = plan_of(c.out(DType::kF32, {each.m, each.n}), {.caps = large_gpu()});
    ASSERT_TRUE(planned.ok()) << planned.status().message();
    const PlannedDispatch& first = planned->front();
    EXPECT_EQ(fmt::format("{} {}{}", first.label.substr(first.label.rfind('/') + 1), first.grid.x,
                          planned->size() > 1 ? ", merged" : ""),
              each.want)
        << fmt::format("{} x {} x {}", each.m, each.n, each.k);
  }
}

}  // namespace
}  // namespace pteryx::ops::testing
