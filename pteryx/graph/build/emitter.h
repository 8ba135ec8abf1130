// The graph in the making: values and nodes are added at its end.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pteryx/graph/graph.h"

namespace pteryx::graph {

class Emitter {
 public:
  explicit Emitter(const OpLookup& ops) : ops_(ops) {}

  Graph& graph() { return g_; }
  const OpLookup& ops() const { return ops_; }
  // What the next nodes come from, for messages: a delegate of the method or -1, and their number.
  void at(int32_t delegate, uint32_t call) {
    delegate_ = delegate;
    call_ = call;
  }
  uint32_t call() const { return call_; }

  ValueId add(Value v, std::string label);
  // A result that is also a plain argument (buffers updated by way of a functional operator) is
  // computed aside and copied: no dispatch may read and write one buffer.
  void emit(std::string_view spelling, std::vector<ValueId> args);
  // Goes on with an instruction, for now by its number, where the condition is false.
  void emit_jump(ValueId condition, uint32_t instruction);

 private:
  std::string_view intern(std::string_view spelling);
  void append(std::string_view spelling, std::vector<ValueId> args);
  void mark_state(const Node& n);

  const OpLookup& ops_;
  Graph g_;
  std::unordered_map<std::string_view, std::string_view> interned_;
  int32_t delegate_ = -1;
  uint32_t call_ = 0;
};

}  // namespace pteryx::graph
