// One run of a method, as a machine: it goes as far as it can and says whether it is finished.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "pteryx/cpu/arena.h"
#include "pteryx/cpu/pool.h"
#include "pteryx/graph/graph.h"
#include "pteryx/ops/op.h"
#include "pteryx/pteryx.h"
#include "pteryx/session/exec/decode_ahead.h"
#include "pteryx/session/exec/faults.h"
#include "pteryx/session/exec/memory.h"
#include "pteryx/session/exec/profiler.h"
#include "pteryx/session/exec/recorder.h"
#include "pteryx/session/exec/staging.h"
#include "pteryx/session/exec/transfer.h"
#include "pteryx/session/layout.h"

namespace pteryx::exec {

struct RunRequest {
  std::span<const Value> inputs;  // whose memory stands until the run is finished
  State* state = nullptr;
  // Of a method that is one stretch of GPU work, what only serves unwanted outputs is not computed
  // behind the last change of state, and not downloaded.
  uint64_t outputs = Wanted::kAll;
  // Finished once it is submitted: its token goes there, and into the next run.
  DecodeAhead* ahead = nullptr;
  bool fed = false;              // its token is the one that the run of `ahead` before it draws
  Profiler* profiler = nullptr;  // takes note of what it costs
  // On the CPU, too, whoever advances it gets the thread back after so long, give or take an
  // operator; none: when the run is finished.
  std::optional<std::chrono::milliseconds> turn = {};
};

// What nodes on the CPU run with; without threads they are computed by the references.
struct CpuKernels {
  std::shared_ptr<cpu::Pool> pool;
  // Of one call at a time, whichever method it is of.
  std::shared_ptr<cpu::Arena> memory = std::make_shared<cpu::Arena>();
  Precision precision = Precision::kF32;
};

// A run walks the blocks. Of each it evaluates the scalars that tensors hold, finds the recording
// of its sizes, waits until that is there, and takes the steps of the layout in their order; it
// waits again where something is downloaded.
class Runner final : public ops::Host {
 public:
  // All of these outlive it.
  Runner(const graph::Graph& g, const Layout& layout, std::shared_ptr<gpu::Device> device,
         Memory& memory, Recorder& recorder, Faults& faults, CpuKernels cpu);

  // Checks the inputs; refused, nothing has changed. One run at a time. Errors: kInvalidArgument,
  // kDevice. Gives the number of the run.
  Result<uint64_t> begin(const RunRequest& request);
  // Errors: kInvalidArgument, kDevice, kMemory; they end the run, and say so where it had changed
  // state.
  Result<bool> advance();
  // Ends a run, if it is that one, wherever it is.
  void cancel(uint64_t run);
  bool is_running() const { return phase_ != Phase::kIdle; }
  std::span<const Value> outputs() const { return outputs_; }
  // Whether the GPU has the token that the last run of `ahead` drew.
  bool can_feed(const DecodeAhead& ahead) const { return feeder_ == &ahead || ahead.is_parked(); }
  void forget(const DecodeAhead& ahead);
  // Sizes as after load; reports that no run has read are forgotten.
  Status reset();

 private:
  enum class Phase : uint8_t { kIdle, kBlock, kRecording, kSteps };

  Result<bool> proceed();
  Status enter_block();
  Result<bool> take_step(const Block& b, const Step& s);
  Status submit(const Step& s);
  Status submit_ahead();
  Status send(std::span<const gpu::Dispatch> dispatches, std::span<const gpu::Copy> copies,
              uint32_t first);
  Status hand_over();
  void leave_block(size_t at);
  size_t next_block(size_t at) const;
  Status evaluate_items(const Block& b);
  void find_published();
  void collect_outputs();
  void end();
  Status failed(Status s);
  void make_room();
  Status run_on_cpu(const ops::Node& n);
  ops::HostTensor host(graph::ValueId id) const override;
  std::span<const Bytes> parts(graph::ValueId id) const override;

  const graph::Graph& graph_;
  const Layout& layout_;
  std::shared_ptr<gpu::Device> device_;
  Memory& memory_;
  Recorder& recorder_;
  Faults& faults_;
  CpuKernels cpu_;
  Staging staging_;
  Transfer transfer_;

  ops::Live live_;                                      // inputs, and values that cross blocks
  std::vector<std::vector<graph::ValueId>> published_;  // of each block: values others read
  Wanted wanted_;
  std::vector<Value> outputs_;
  DecodeAhead* feeder_ = nullptr;  // whose token stands in the staging buffer
  bool follows_ = false;           // on the run that fed it, with nothing in between
  uint64_t bound_state_ = 0;       // that the memory stands for

  // Of the run under way.
  uint64_t run_ = 0;
  RunRequest request_;
  Phase phase_ = Phase::kIdle;
  size_t block_ = 0;
  size_t step_ = 0;
  Recording* recording_ = nullptr;
  uint64_t blocks_run_ = 0;
  bool changed_state_ = false;
};

}  // namespace pteryx::exec
