// SPDX-License-Identifier: BSD-3-Clause
#include "measure.h"

#include <algorithm>
#include <chrono>

namespace pteryx::bench {

void measure(benchmark::State& state, graph::Graph g, int nodes, double bytes, double flops,
             const RunOptions& options) {
  const gpu::Peaks& top = peaks();
  Runner runner(std::move(g), options);
  runner.run();
  keep_busy(0.3);
  double best = 1e9;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    runner.run();
    const double s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    state.SetIterationTime(s);
    best = std::min(best, s / nodes);
  }
  state.counters["us"] = best * 1e6;
  double on_gpu = 1e9;
  for (int i = 0; i < 8; ++i) on_gpu = std::min(on_gpu, runner.gpu_us() * 1e-6 / nodes);
  if (on_gpu > 0) {
    state.counters["gpu_us"] = on_gpu * 1e6;
    best = on_gpu;
  }
  state.counters["GB/s"] = bytes / best / 1e9;
  state.counters["of_stream"] = bytes / best / top.bytes_per_s;
  state.counters["TFLOP/s"] = flops / best / 1e12;
  if (top.flops_per_s > 0) state.counters["of_f32_peak"] = flops / best / top.flops_per_s;
}

int scaled(int n) {
  const gpu::Caps& caps = device()->caps();
  return caps.software || caps.cpu ? std::max(n / 16, 1) : n;
}

void timed(benchmark::internal::Benchmark* b) {
  b->UseManualTime()->MinTime(0.2)->Unit(benchmark::kMillisecond);
}

}  // namespace pteryx::bench
