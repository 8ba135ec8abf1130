// Times a graph and reports it against the adapter's peaks.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <benchmark/benchmark.h>

#include "bench_graph.h"

namespace pteryx::bench {

// Times `nodes` equal nodes in one submit; `bytes` and `flops` are those of one node. `us` is what
// the host waits for one, with what it takes to encode it, `gpu_us` what the GPU takes; rates are
// by the latter where there are timestamps.
void measure(benchmark::State& state, graph::Graph g, int nodes, double bytes, double flops,
             const RunOptions& options = {});

// Fewer nodes where there is no GPU.
int scaled(int n);

// How all rows are timed.
void timed(benchmark::internal::Benchmark* b);

}  // namespace pteryx::bench
