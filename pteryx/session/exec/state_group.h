// The state of a method, or of methods that share some, such as a prefill and a decode method over
// the same KV caches.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "pteryx/graph/graph.h"
#include "pteryx/session/exec/constants.h"
#include "pteryx/session/exec/state.h"
#include "pteryx/session/layout.h"

namespace pteryx::exec {

// Which cell of its states a root of a method is.
struct StateRoot {
  uint32_t root = 0;
  uint32_t cell = 0;
};

class StateGroup {
 public:
  // All methods first. What two of them have at the same shared place is one cell. Errors:
  // kUnsupported where they do not have it in the same way.
  Result<std::vector<StateRoot>> add(const graph::Graph& g, const Layout& layout);
  // Begins to make the first state. The pool outlives it.
  void begin(const ConstantPool& constants);

  // GPU memory that several methods counted as theirs, beyond the first.
  uint64_t shared_bytes() const { return shared_bytes_; }
  uint64_t shared_host_bytes() const { return shared_host_bytes_; }  // of the host
  // The state of runs that name no other.
  State& state() { return *state_; }
  // Another one, which begins to be made.
  std::unique_ptr<State> new_state() const;

 private:
  struct Shared {
    uint32_t cell = 0;
    std::string method;  // that was the first to have it
    std::string form;    // as it has it
    uint64_t bytes = 0;
  };
  Result<uint32_t> cell_of(const graph::Graph& g, const Root& r);
  Status check(const graph::Graph& g, const Root& r) const;

  StateForm form_;
  std::map<graph::SharedPlace, Shared> shared_;
  uint64_t shared_bytes_ = 0;
  uint64_t shared_host_bytes_ = 0;
  const ConstantPool* constants_ = nullptr;
  std::unique_ptr<InitialValues> initial_;
  std::unique_ptr<State> state_;
};

}  // namespace pteryx::exec
