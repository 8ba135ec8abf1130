// What a language model spends its time on: products with 4-bit weights, and attention over a
// key-value cache.
// Floors: a product of few rows reads n * k / 2 bytes of weights and n * k / 64 * 4 of scales (half
// as many at f16 precision) once, at the speed of the stream; one of many rows makes 2 * m * n * k
// operations, at the f32 peak or, with subgroup matrices, at several times that. Attention of one
// row reads the keys and values of its context once; of many rows it makes half of 4 * heads * size
// * rows^2 operations. Some rows only: --benchmark_filter=REGEX, such as
// 'gemm/q4/rounded/m:(8|9|16)/k:2048'.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "measure.h"

namespace pteryx::bench {
namespace {

using graph::ValueId;

constexpr int64_t kGroup = 64;

// x [m, k] times different weights [n, k], together larger than any cache.
void product(benchmark::State& state, const RunOptions& options) {
  const int64_t m = state.range(0);
  const int64_t k = state.range(1);
  const int64_t n = state.range(2);
  const auto codes = static_cast<double>(n * k);
  const bool half = options.precision == Precision::kF16;  // scales are, as a session makes them
  const double weight = codes / 2 + codes * (half ? 2 : 4) / kGroup;
  const int nodes =
      scaled(static_cast<int>(std::clamp(4.5e8 / weight, 16.0, m > 8 ? 32.0 : 256.0)));
  GraphMaker g;
  const ValueId x = g.constant(DType::kF32, {1, m, k});
  const ValueId none = g.value(graph::Null{});
  const ValueId group = g.value(kGroup);
  ValueId y = x;
  for (int i = 0; i < nodes; ++i) {
    const ValueId w = g.constant(DType::kU8, {n, k / 2});
    const ValueId scales = half ? g.constant(DType::kF16, {n / 8, k / kGroup, 8})
                                : g.constant(DType::kF32, {k / kGroup, n});
    y = g.tensor(DType::kF32, {1, m, n});
    g.node("et_vk.linear_q4gsw.default", {x, w, scales, group, none, y});
  }
  g.output(y);
  const double bytes = weight + static_cast<double>(m * (n + k)) * 4;
  measure(state, g.finish(), nodes, bytes, 2.0 * static_cast<double>(m * n * k), options);
}

// `rows` new rows behind `context` - `rows` old ones; 32 heads of 64, 8 of keys and values.
void attention(benchmark::State& state, DType cache, const RunOptions& options) {
  const int64_t rows = state.range(0);
  const int64_t context = state.range(1);
  const int64_t heads = 32;
  const int64_t kv_heads = 8;
  const int64_t size = 64;
  const int64_t capacity = 8192;
  const int nodes = scaled(rows > 4 ? 16 : 64);  // the cost of a submit is spread over them
  GraphMaker g;
  const ValueId q = g.constant(DType::kF32, {1, rows, heads, size});
  const ValueId k = g.constant(DType::kF32, {1, rows, kv_heads, size});
  const ValueId v = g.constant(DType::kF32, {1, rows, kv_heads, size});
  const ValueId start = g.value(context - rows);
  const ValueId one = g.value(int64_t{1});
  const ValueId none = g.value(graph::Null{});
  const ValueId dropout = g.value(int64_t{0});
  const ValueId causal = g.value(true);
  ValueId y = q;
  for (int i = 0; i < nodes; ++i) {
    const ValueId keys = g.state(cache, {1, capacity, kv_heads, size});
    const ValueId values = g.state(cache, {1, capacity, kv_heads, size});
    y = g.tensor(DType::kF32, {1, rows, heads, size});
    g.node("sdpa_with_kv_cache.default",
           {q, k, v, keys, values, start, one, none, dropout, causal, none, y});
  }
  g.output(y);
  const double seen = static_cast<double>(context) - static_cast<double>(rows - 1) / 2;
  const double bytes =
      static_cast<double>(size_bytes(cache)) * static_cast<double>(2 * context * kv_heads * size) +
      4.0 * static_cast<double>(2 * rows * heads * size);
  const double flops = 4.0 * static_cast<double>(heads * size * rows) * seen;
  measure(state, g.finish(), nodes, bytes, flops, options);
}

void add_products() {
  for (const int64_t m : {1, 2, 4, 8}) {
    auto* const b =
        benchmark::RegisterBenchmark("gemv/q4", [](benchmark::State& s) { product(s, {}); });
    for (const int64_t n : {512, 2048, 3072, 8192, 16384, 128256}) b->Args({m, 2048, n});
    timed(b->Args({m, 8192, 2048}));
    auto* const rounded = benchmark::RegisterBenchmark(
        "gemv/q4/rounded", [](benchmark::State& s) { product(s, {.precision = Precision::kF16}); });
    for (const int64_t n : {2048, 16384, 128256}) rounded->Args({m, 2048, n});
    for (const int64_t n : {4096, 6144, 28672}) rounded->Args({m, 4096, n});
    timed(rounded->Args({m, 14336, 4096}));
  }
  // From one row to a long prompt, so that a step between routes shows.
  const auto rows = [](const char* name, const RunOptions& options) {
    auto* const b =
        benchmark::RegisterBenchmark(name, [options](benchmark::State& s) { product(s, options); });
    b->ArgNames({"m", "k", "n"});
    for (const int64_t m : {1, 2, 4, 8, 9, 12, 16, 17, 32, 33, 64, 65, 96, 128, 512, 2048}) {
      b->Args({m, 2048, 16384})->Args({m, 2048, 2048})->Args({m, 8192, 2048});
      b->Args({m, 2048, 3072});
    }
    timed(b);
  };
  rows("gemm/q4", {});
  rows("gemm/q4/rounded", {.precision = Precision::kF16});
}

// One row of q, then many, over caches of f16 and f32.
void add_attention() {
  const auto add = [](const char* name, DType cache, const RunOptions& options) {
    return benchmark::RegisterBenchmark(
        name, [cache, options](benchmark::State& s) { attention(s, cache, options); });
  };
  auto* const decode = add("attention/decode", DType::kF16, {});
  for (const int64_t context : {64, 128, 512, 1024, 2048, 4096}) decode->Args({1, context});
  timed(decode->Args({4, 1024}));
  timed(add("attention/decode/f32", DType::kF32, {})->Args({1, 128})->Args({1, 4096}));
  timed(add("attention/prefill", DType::kF16, {})->Args({512, 512})->Args({2048, 2048}));
  auto* const rounded =
      add("attention/prefill/rounded", DType::kF16, {.precision = Precision::kF16});
  for (const int64_t rows : {128, 512, 2048, 4096}) rounded->Args({rows, rows});
  timed(rounded);
  timed(add("attention/prefill/rounded/f32", DType::kF32, {.precision = Precision::kF16})
            ->Args({2048, 2048}));
}

}  // namespace
}  // namespace pteryx::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  pteryx::bench::add_products();
  pteryx::bench::add_attention();
  pteryx::bench::peaks();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
