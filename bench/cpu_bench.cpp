// What the processor can do: bytes read from memory, and multiply-adds in registers, with one
// thread and with as many as sessions use. Fractions of these are what docs/performance.md states.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/cpu_bench.cpp"
#include <cstddef>
#include <cstdint>
#include <vector>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "pteryx/cpu/dot-inl.h"
#include "pteryx/cpu/pool.h"
#include "pteryx/cpu/processors.h"

PTERYX_BEFORE_PAIRS();
namespace pteryx::bench {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kChains = 12;  // more than latency times rate

// Reads a range of bytes, a multiple of 4096.
uint64_t read_bytes(const uint8_t* from, size_t bytes) {
  const hn::ScalableTag<uint64_t> d;
  constexpr size_t kStep = hn::MaxLanes(d);
  auto sum = hn::Zero(d);
  auto other = hn::Zero(d);
  const auto* words = reinterpret_cast<const uint64_t*>(from);
  for (size_t i = 0; i < bytes / 8; i += 4 * kStep) {
    sum = hn::Xor(sum, hn::Xor(hn::LoadU(d, words + i), hn::LoadU(d, words + i + kStep)));
    other = hn::Xor(
        other, hn::Xor(hn::LoadU(d, words + i + 2 * kStep), hn::LoadU(d, words + i + 3 * kStep)));
  }
  return hn::GetLane(hn::Xor(sum, other));
}

// Returns the multiply-adds done, and leaves a number that depends on them.
double multiply_floats(size_t turns, float& left) {
  const hn::ScalableTag<float> d;
  const auto a = hn::Set(d, 0.999F + left);
  hn::Vec<decltype(d)> sum[kChains];
#pragma GCC unroll 16
  for (size_t i = 0; i < kChains; ++i) sum[i] = hn::Set(d, static_cast<float>(i));
  for (size_t t = 0; t < turns; ++t) {
#pragma GCC unroll 16
    for (size_t i = 0; i < kChains; ++i) sum[i] = hn::MulAdd(sum[i], a, a);
  }
#pragma GCC unroll 16
  for (size_t i = 1; i < kChains; ++i) sum[0] = hn::Add(sum[0], sum[i]);
  left = hn::GetLane(sum[0]) * 1e-30F;
  return static_cast<double>(turns * kChains * hn::Lanes(d));
}

double multiply_pairs(size_t turns, float& left) {
  const hn::ScalableTag<int16_t> d16;
  const hn::RepartitionToWide<decltype(d16)> d;
  auto a = hn::Set(d16, static_cast<int16_t>(3.0F + left));
  hn::Vec<decltype(d)> sum[kChains];
  hn::Vec<decltype(d)> odd[kChains];
#pragma GCC unroll 16
  for (size_t i = 0; i < kChains; ++i) sum[i] = odd[i] = hn::Set(d, static_cast<int32_t>(i));
  for (size_t t = 0; t < turns; ++t) {
#pragma GCC unroll 16
    for (size_t i = 0; i < kChains; ++i) {
      const auto x = hn::BitCast(d16, sum[i]);  // so that no product is that of the turn before
      sum[i] = cpu::HWY_NAMESPACE::add_pairs(d, x, a, sum[i], odd[i]);
    }
  }
#pragma GCC unroll 16
  for (size_t i = 0; i < kChains; ++i) sum[0] = hn::Add(sum[0], hn::Add(sum[i], odd[i]));
  left = static_cast<float>(hn::GetLane(sum[0])) * 1e-30F;
  return static_cast<double>(turns * kChains * hn::Lanes(d16));
}

}  // namespace HWY_NAMESPACE
}  // namespace pteryx::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <benchmark/benchmark.h>

namespace pteryx::bench {
namespace {

HWY_EXPORT(read_bytes);
HWY_EXPORT(multiply_floats);
HWY_EXPORT(multiply_pairs);

using Kernel = double (*)(size_t, float&);

void read_memory(benchmark::State& state) {
  constexpr size_t kPart = size_t{1} << 22;
  constexpr size_t kParts = 512;  // together larger than any cache
  const auto pool = cpu::shared_pool(static_cast<size_t>(state.range(0)));
  static const std::vector<uint8_t> memory(kPart * kParts, 1);
  std::vector<uint64_t> sums(kParts);
  for (auto _ : state) {
    pool->run(kParts, [&](size_t i, size_t) {
      sums[i] = HWY_DYNAMIC_DISPATCH(read_bytes)(memory.data() + i * kPart, kPart);
    });
    benchmark::DoNotOptimize(sums.data());
  }
  state.counters["GB/s"] = benchmark::Counter(static_cast<double>(kPart * kParts) / 1e9,
                                              benchmark::Counter::kIsIterationInvariantRate);
}

void multiply(benchmark::State& state, Kernel kernel) {
  constexpr size_t kTurns = 100000;
  constexpr size_t kItems = 32;
  const auto pool = cpu::shared_pool(static_cast<size_t>(state.range(0)));
  std::vector<double> done(kItems);
  for (auto _ : state) {
    pool->run(kItems, [&](size_t i, size_t) {
      float left = 0;
      done[i] = kernel(kTurns, left);
      benchmark::DoNotOptimize(left);
    });
  }
  // A multiplication and an addition.
  state.counters["GOP/s"] = benchmark::Counter(2 * static_cast<double>(kItems) * done[0] / 1e9,
                                               benchmark::Counter::kIsIterationInvariantRate);
}

double floats(size_t turns, float& left) {
  return HWY_DYNAMIC_DISPATCH(multiply_floats)(turns, left);
}
double pairs(size_t turns, float& left) {
  return HWY_DYNAMIC_DISPATCH(multiply_pairs)(turns, left);
}

void with_threads(benchmark::internal::Benchmark* b) {
  b->UseRealTime()->Arg(1)->ArgName("threads");
  if (cpu::usable_cores() > 1) b->Arg(static_cast<int64_t>(cpu::usable_cores()));
}

BENCHMARK(read_memory)->Name("read")->Apply(with_threads)->MinTime(1);
BENCHMARK_CAPTURE(multiply, f32, floats)->Name("f32")->Apply(with_threads);
BENCHMARK_CAPTURE(multiply, i16, pairs)->Name("i16_pairs")->Apply(with_threads);

}  // namespace
}  // namespace pteryx::bench

BENCHMARK_MAIN();
#endif
