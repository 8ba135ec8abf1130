// What the host pays: for a load, growing with the number of nodes, and for a run, per dispatch.
// SPDX-License-Identifier: BSD-3-Clause
#include <benchmark/benchmark.h>

#include "bench_graph.h"

#include "pteryx/graph/build.h"
#include "pteryx/ops/table.h"
#include "pteryx/program/testing/build.h"
#include "pteryx/session/inspect.h"
#include "pteryx/session/layout.h"

namespace pteryx::bench {
namespace {

using program::testing::BlobBuilder;
using program::testing::ProgramBuilder;

// A program whose one delegate is a chain of n additions.
program::testing::FileBytes chain_program(int n) {
  BlobBuilder blob;
  int32_t x = blob.add_tensor({.dims = {4, 8}});
  const int32_t alpha = blob.add_int(1);
  blob.inputs = {static_cast<uint32_t>(x)};
  for (int i = 0; i < n; ++i) {
    const int32_t y = blob.add_tensor({.dims = {4, 8}});
    blob.add_call("aten.add.Tensor", {x, x, alpha, y});
    x = y;
  }
  blob.outputs = {static_cast<uint32_t>(x)};
  ProgramBuilder p;
  const int32_t in = p.add_tensor({.sizes = {4, 8}});
  const int32_t out = p.add_tensor({.sizes = {4, 8}});
  p.inputs = {in};
  p.outputs = {out};
  p.add_delegate("VulkanBackend", blob.finish());
  p.add_delegate_call(0, {in, out});
  return p.finish();
}

// Bytes to a complete layout: parse, verify, build the graph, check every shape, plan memory and
// every dispatch.
void load(benchmark::State& state) {
  const auto file = chain_program(static_cast<int>(state.range(0)));
  const auto context = make_context(gpu::Caps{}, "");
  for (auto _ : state) {
    const auto program = program::Program::parse(file.bytes());
    const auto g = graph::build_graph(*program, program->methods()[0], ops::lookup());
    const auto layout = make_layout(*g, *context);
    if (!layout.ok()) state.SkipWithError(std::string(layout.status().message()).c_str());
    benchmark::DoNotOptimize(layout);
  }
  state.counters["us_per_node"] = benchmark::Counter(
      static_cast<double>(state.range(0)) * 1e-6,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.SetComplexityN(state.range(0));
}

// A chain of tiny dispatches: what is left is the host's work per dispatch and the GPU's cost of a
// launch.
void run(benchmark::State& state) {
  GraphMaker g;
  graph::ValueId x = g.constant(DType::kF32, {64});
  const auto alpha = g.value(int64_t{1});
  for (int64_t i = 0; i < state.range(0); ++i) {
    const auto y = g.tensor(DType::kF32, {64});
    g.node("aten.add.Tensor", {x, x, alpha, y});
    x = y;
  }
  g.output(x);
  Runner runner(g.finish());
  for (auto _ : state) runner.run();
  state.counters["us_per_dispatch"] = benchmark::Counter(
      static_cast<double>(runner.dispatches()) * 1e-6,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

BENCHMARK(load)
    ->Arg(1000)
    ->Arg(10000)
    ->Arg(100000)
    ->Unit(benchmark::kMillisecond)
    ->Complexity(benchmark::oN);
BENCHMARK(run)->Arg(10)->Arg(100)->Arg(1000)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace pteryx::bench

BENCHMARK_MAIN();
