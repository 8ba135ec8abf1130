// One method, loaded: its graph and what runs it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "pteryx/graph/graph.h"
#include "pteryx/ops/op.h"
#include "pteryx/session/exec/constants.h"
#include "pteryx/session/exec/decode_ahead.h"
#include "pteryx/session/exec/faults.h"
#include "pteryx/session/exec/memory.h"
#include "pteryx/session/exec/recorder.h"
#include "pteryx/session/exec/runner.h"
#include "pteryx/session/exec/state_group.h"
#include "pteryx/session/layout.h"

namespace pteryx::exec {

class Method {
 public:
  // What states of it have to do with it: their group, which outlives it and has begun, and what
  // that said of its roots.
  struct States {
    StateGroup& group;
    std::vector<StateRoot> roots;
  };
  // Begins to load. `constants` outlives it; `context` holds the device's capabilities and forced
  // routes.
  Method(graph::Graph graph, Layout layout, States states, ops::PlanContext context,
         ConstantPool& constants, uint32_t most_recordings, CpuKernels cpu);

  // True once it can run. Errors: kMemory, kIo, kDevice, kInvalidProgram, kUnsupported.
  Result<bool> advance();

  const graph::Graph& graph() const { return graph_; }
  const Layout& layout() const { return layout_; }
  const Memory& memory() const { return memory_; }
  Runner& runner() { return runner_; }
  // Of runs that name no other state, the one of the group.
  StateGroup& states() const { return states_; }
  // Before a state goes that runs of the method have used.
  void forget(const State& state) { recorder_.forget(state.id()); }

  // Errors: those of DecodeAhead::create.
  Result<std::unique_ptr<DecodeAhead>> decode_ahead(const FeedRule& rule, uint32_t depth);
  size_t recordings() const { return recorder_.size(); }

 private:
  graph::Graph graph_;
  Layout layout_;
  ops::PlanContext context_;
  ConstantPool& constants_;
  StateGroup& states_;
  Memory memory_;
  Recorder recorder_;
  Faults faults_;
  Runner runner_;
};

}  // namespace pteryx::exec
