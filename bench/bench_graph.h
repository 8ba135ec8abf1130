// Graphs made by hand, run by the session's own machinery, and the peaks of the adapter they
// are compared with.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "pteryx/gpu/device.h"
#include "pteryx/gpu/native/peaks.h"
#include "pteryx/graph/graph.h"
#include "pteryx/session/exec/method.h"

namespace pteryx::bench {

// The device all benchmarks share: a GPU or, where none can be used, the CPU; PTERYX_DEVICE and
// PTERYX_ADAPTER choose as with the tool. Aborts with the reason where what they name is not there.
std::shared_ptr<gpu::Device> device();

// Of it, measured once; operations are not known of a CPU, and 0.
const gpu::Peaks& peaks();
// Works the GPU for that long: clocks fall while it waits, and rise slowly.
void keep_busy(double seconds);

class GraphMaker {
 public:
  graph::ValueId tensor(DType dtype, const Dims& dims);
  graph::ValueId constant(DType dtype, const Dims& dims);  // random, small values
  graph::ValueId state(DType dtype, const Dims& dims);     // zero at first
  graph::ValueId value(graph::Value v);
  void node(std::string_view op, std::vector<graph::ValueId> args);
  // The only output: the first element of `from`, so that nothing large is read back.
  void output(graph::ValueId from);
  graph::Graph finish() { return std::move(g_); }

 private:
  graph::Graph g_;
};

struct RunOptions {
  std::string routes = {};
  Precision precision = Precision::kF32;
};

// A loaded graph without inputs.
class Runner {
 public:
  explicit Runner(graph::Graph g, const RunOptions& options = {});
  void run();       // and wait
  double gpu_us();  // of a run, on the GPU; 0 where it has no timestamps
  uint64_t dispatches() const { return dispatches_; }  // of a run; on a CPU, nodes

 private:
  exec::ConstantPool constants_;
  exec::StateGroup states_;
  std::unique_ptr<exec::Method> method_;
  uint64_t dispatches_ = 0;
};

}  // namespace pteryx::bench
