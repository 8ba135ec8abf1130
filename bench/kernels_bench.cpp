// Matrix products, convolution and softmax as fractions of what the same adapter reaches by itself.
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

// Channels c in and out, square image, square kernel, padding that keeps the size.
void conv(benchmark::State& state) {
  const int64_t c = state.range(0);
  const int64_t size = state.range(1);
  const int64_t kernel = state.range(2);
  const int nodes = scaled(32);
  GraphMaker g;
  ValueId x = g.constant(DType::kF32, {1, c, size, size});
  const ValueId none = g.value(graph::Null{});
  const ValueId ones = g.value(graph::IntList{{1, 1}});
  const ValueId padding = g.value(graph::IntList{{kernel / 2, kernel / 2}});
  const ValueId zeros = g.value(graph::IntList{{0, 0}});
  const ValueId no = g.value(false);
  const ValueId groups = g.value(int64_t{1});
  for (int i = 0; i < nodes; ++i) {
    const ValueId w = g.constant(DType::kF32, {c, c, kernel, kernel});
    const ValueId y = g.tensor(DType::kF32, {1, c, size, size});
    g.node("aten.convolution.default", {x, w, none, ones, padding, ones, no, zeros, groups, y});
    x = y;
  }
  g.output(x);
  const double flops = 2.0 * static_cast<double>(c * c * kernel * kernel * size * size);
  const double bytes = 4.0 * static_cast<double>(2 * c * size * size + c * c * kernel * kernel);
  measure(state, g.finish(), nodes, bytes, flops);
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
  timed(benchmark::RegisterBenchmark("conv", conv)
            ->Args({64, 56, 3})
            ->Args({128, 28, 3})
            ->Args({256, 14, 3})
            ->Args({256, 56, 1})
            ->Args({512, 28, 1}));
  timed(benchmark::RegisterBenchmark("softmax", softmax)
            ->Args({4096, 1024})
            ->Args({64, 128256})
            ->Args({65536, 128})
            ->Args({1, 128256}));
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
