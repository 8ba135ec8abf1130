// Matrix products, convolution, softmax and norms as fractions of what the same adapter reaches by
// itself.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "measure.h"

namespace pteryx::bench {
namespace {

using graph::ValueId;

// x [m, k] times `nodes` different weights [n, k]; weights are read cold when they exceed the cache
// together.
void linear(benchmark::State& state, DType dtype, const RunOptions& options) {
  const int64_t m = state.range(0);
  const int64_t k = state.range(1);
  const int64_t n = state.range(2);
  const double element = static_cast<double>(size_bytes(dtype));
  const double weight = static_cast<double>(n * k) * element;
  const int nodes = scaled(static_cast<int>(std::clamp(1.5e9 / weight, 8.0, 64.0)));
  GraphMaker g;
  const ValueId x = g.constant(dtype, {m, k});
  const ValueId none = g.value(graph::Null{});
  ValueId y = x;
  for (int i = 0; i < nodes; ++i) {
    const ValueId w = g.constant(dtype, {n, k});
    y = g.tensor(dtype, {m, n});
    g.node("aten.linear.default", {x, w, none, y});
  }
  g.output(y);
  const double bytes = weight + static_cast<double>(m * (n + k)) * element;
  measure(state, g.finish(), nodes, bytes, 2.0 * static_cast<double>(m * n * k), options);
}

void softmax(benchmark::State& state) {
  const Dims dims = {state.range(0), state.range(1)};
  const int nodes = scaled(32);
  GraphMaker g;
  ValueId x = g.constant(DType::kF32, dims);
  const ValueId dim = g.value(int64_t{-1});
  const ValueId half = g.value(false);
  for (int i = 0; i < nodes; ++i) {
    const ValueId y = g.tensor(DType::kF32, dims);
    g.node("aten._softmax.default", {x, dim, half, y});
    x = y;
  }
  g.output(x);
  measure(state, g.finish(), nodes, 8.0 * static_cast<double>(numel(dims)),
          5.0 * static_cast<double>(numel(dims)));
}

// Rows and their length; norms of groups have 32 of them in an image of so many channels and
// positions.
void layer_norm(benchmark::State& state) {
  const Dims dims = {state.range(0), state.range(1)};
  const int nodes = scaled(32);
  GraphMaker g;
  ValueId x = g.constant(DType::kF32, dims);
  const ValueId none = g.value(graph::Null{});
  const ValueId weight = g.constant(DType::kF32, {dims[1]});
  const ValueId bias = g.constant(DType::kF32, {dims[1]});
  const ValueId over = g.value(graph::IntList{{dims[1]}});
  const ValueId eps = g.value(1e-5);
  for (int i = 0; i < nodes; ++i) {
    const ValueId y = g.tensor(DType::kF32, dims);
    g.node("aten.native_layer_norm.default",
           {x, over, weight, bias, eps, g.value(graph::ValueList{{y, none, none}})});
    x = y;
  }
  g.output(x);
  measure(state, g.finish(), nodes, 8.0 * static_cast<double>(numel(dims)),
          8.0 * static_cast<double>(numel(dims)));
}
void group_norm(benchmark::State& state) {
  const int64_t channels = state.range(0);
  const int64_t positions = state.range(1);
  const Dims dims = {1, channels, positions};
  const int nodes = scaled(32);
  GraphMaker g;
  ValueId x = g.constant(DType::kF32, dims);
  const ValueId none = g.value(graph::Null{});
  const ValueId weight = g.constant(DType::kF32, {channels});
  const ValueId bias = g.constant(DType::kF32, {channels});
  const auto integer = [&](int64_t v) { return g.value(v); };
  const ValueId eps = g.value(1e-5);
  for (int i = 0; i < nodes; ++i) {
    const ValueId y = g.tensor(DType::kF32, dims);
    g.node("aten.native_group_norm.default",
           {x, weight, bias, integer(1), integer(channels), integer(positions), integer(32), eps,
            g.value(graph::ValueList{{y, none, none}})});
    x = y;
  }
  g.output(x);
  measure(state, g.finish(), nodes, 8.0 * static_cast<double>(numel(dims)),
          8.0 * static_cast<double>(numel(dims)));
}

void relu(benchmark::State& state) {
  const Dims dims = {state.range(0)};
  const int nodes = scaled(32);
  GraphMaker g;
  ValueId x = g.constant(DType::kF32, dims);
  for (int i = 0; i < nodes; ++i) {
    const ValueId y = g.tensor(DType::kF32, dims);
    g.node("aten.relu.default", {x, y});
    x = y;
  }
  g.output(x);
  measure(state, g.finish(), nodes, 8.0 * static_cast<double>(numel(dims)),
          static_cast<double>(numel(dims)));
}

// Args: channels in and out, groups, size of a square kernel, stride, size of a square image; with
// bias and relu, and padding that keeps the size at stride 1. Weights are read cold.
void conv(benchmark::State& state, const RunOptions& options, DType t) {
  const int64_t in = state.range(0);
  const int64_t out = state.range(1);
  const int64_t groups = state.range(2);
  const int64_t kernel = state.range(3);
  const int64_t stride = state.range(4);
  const int64_t size = state.range(5);
  const int64_t result = (size + 2 * (kernel / 2) - kernel) / stride + 1;
  const int64_t entries = out * (in / groups) * kernel * kernel;
  const auto element = static_cast<double>(size_bytes(t));
  const double weight = element * static_cast<double>(entries);
  const int nodes = scaled(static_cast<int>(std::clamp(4e8 / weight, 8.0, 32.0)));
  GraphMaker g;
  ValueId x = g.constant(t, {1, in, size, size});
  const ValueId none = g.value(graph::Null{});
  const ValueId strides = g.value(graph::IntList{{stride, stride}});
  const ValueId ones = g.value(graph::IntList{{1, 1}});
  const ValueId padding = g.value(graph::IntList{{kernel / 2, kernel / 2}});
  const ValueId zeros = g.value(graph::IntList{{0, 0}});
  const ValueId no = g.value(false);
  const ValueId of = g.value(groups);
  const ValueId least = g.value(0.0);
  ValueId y = x;
  for (int i = 0; i < nodes; ++i) {
    const ValueId w = g.constant(t, {out, in / groups, kernel, kernel});
    const ValueId bias = g.constant(t, {out});
    y = g.tensor(t, {1, out, result, result});
    g.node("et_vk.conv_with_clamp.default",
           {x, w, bias, strides, padding, ones, no, zeros, of, least, none, y});
    if (in == out && result == size) x = y;
  }
  g.output(y);
  const double flops = 2.0 * static_cast<double>(entries * result * result);
  const double bytes =
      weight + element * static_cast<double>(in * size * size + out * result * result);
  measure(state, g.finish(), nodes, bytes, flops, options);
}

void add_all() {
  const auto gemv = [](const char* name, DType t) {
    timed(benchmark::RegisterBenchmark(name, [t](benchmark::State& s) { linear(s, t, {}); })
              ->Args({1, 2048, 2048})
              ->Args({1, 2048, 8192})
              ->Args({1, 8192, 2048})
              ->Args({1, 4096, 16384})
              ->Args({4, 2048, 8192}));
  };
  const auto gemm = [](const char* name, DType t, Precision p) {
    timed(benchmark::RegisterBenchmark(
              name, [t, p](benchmark::State& s) { linear(s, t, {.precision = p}); })
              ->Args({197, 768, 768})
              ->Args({197, 768, 2304})
              ->Args({197, 768, 3072})
              ->Args({197, 3072, 768})
              ->Args({128, 2048, 2048})
              ->Args({512, 2048, 2048})
              ->Args({512, 2048, 8192})
              ->Args({2048, 2048, 8192}));
  };
  gemv("gemv/f32", DType::kF32);
  gemv("gemv/f16", DType::kF16);
  gemm("gemm/f32", DType::kF32, Precision::kF32);
  gemm("gemm/f16", DType::kF16, Precision::kF32);
  gemm("gemm/f32/rounded", DType::kF32, Precision::kF16);
  gemm("gemm/f16/rounded", DType::kF16, Precision::kF16);
  // Layers of a diffusion model, of ResNet, and depthwise ones of MobileNet.
  using Layers = std::vector<std::vector<int64_t>>;
  const Layers square = {{320, 320, 1, 3, 1, 64},   {640, 640, 1, 3, 1, 32},
                         {1280, 1280, 1, 3, 1, 16}, {64, 64, 1, 3, 1, 56},
                         {128, 128, 1, 3, 1, 28},   {256, 256, 1, 3, 1, 14},
                         {512, 512, 1, 3, 1, 7}};
  const Layers others = {{256, 64, 1, 1, 1, 56}, {1024, 256, 1, 1, 1, 14}, {3, 64, 1, 7, 2, 224}};
  const Layers depthwise = {{96, 96, 96, 3, 1, 112},
                            {144, 144, 144, 3, 1, 56},
                            {576, 576, 576, 3, 1, 14},
                            {576, 576, 576, 5, 1, 14}};
  const auto layers = [](const char* name, const RunOptions& options,
                         const std::vector<Layers>& all, DType t = DType::kF32) {
    auto* const row = benchmark::RegisterBenchmark(
        name, [options, t](benchmark::State& s) { conv(s, options, t); });
    for (const Layers& some : all) {
      for (const std::vector<int64_t>& args : some) row->Args(args);
    }
    timed(row);
  };
  layers("conv/f32", {}, {square, others, depthwise});
  layers("conv/f16", {}, {square, others, depthwise}, DType::kF16);
  layers("conv/f32/rounded", {.precision = Precision::kF16}, {square, others});
  layers("conv/f32/tile", {.routes = "conv:tile"}, {square});
  layers("conv/f32/winograd2", {.routes = "conv:winograd2"}, {square});
  layers("conv/f32/winograd4", {.routes = "conv:winograd4"}, {square});
  layers("conv/f32/rows", {.routes = "conv:depthwise"}, {depthwise});
  timed(benchmark::RegisterBenchmark("softmax", softmax)
            ->Args({4096, 1024})
            ->Args({64, 128256})
            ->Args({65536, 128})
            ->Args({1, 128256}));
  timed(benchmark::RegisterBenchmark("layer_norm", layer_norm)
            ->Args({197, 768})
            ->Args({4096, 1024})
            ->Args({16384, 4096}));
  timed(benchmark::RegisterBenchmark("group_norm", group_norm)
            ->Args({320, 64 * 64})
            ->Args({640, 32 * 32})
            ->Args({320, 512 * 512}));
  timed(benchmark::RegisterBenchmark("relu", relu)->Args({1 << 26}));
}

}  // namespace
}  // namespace pteryx::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  pteryx::bench::add_all();
  pteryx::bench::peaks();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
