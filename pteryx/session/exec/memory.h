// Where the values of a method are: buffers and host memory, made once at their largest.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "pteryx/cpu/arena.h"
#include "pteryx/graph/graph.h"
#include "pteryx/ops/sample/sample.h"
#include "pteryx/session/constant.h"
#include "pteryx/session/exec/constants.h"
#include "pteryx/session/exec/owned.h"
#include "pteryx/session/exec/state.h"
#include "pteryx/session/exec/state_group.h"
#include "pteryx/session/layout.h"

namespace pteryx::exec {

class Memory {
 public:
  // Of the rule of sample/common/feed.wgsl.
  static constexpr size_t kRuleWords = 3 + 2 * ops::kMostMoves;

  // Creates the buffers, and asks the pool for constants; `state` lists the roots that are state.
  Memory(const graph::Graph& g, const Layout& layout, std::vector<StateRoot> state,
         ConstantPool& constants);

  // True once the buffers and the constants that the host reads are there; those of the pool are
  // its own. Errors: kMemory, kIo, kDevice.
  Result<bool> advance();

  // Whose memory the roots that are state stand for from now on.
  void use(State& state);

  const gpu::Binding& buffer(uint32_t root) const { return buffers_[root]; }
  const gpu::Binding& buffer_of(graph::ValueId id) const {
    return buffers_[layout_.root_of[graph::index(id)]];
  }
  std::byte* host(uint32_t root) const {
    return host_[root] != nullptr ? host_[root] : joined(root);
  }
  std::byte* host_of(graph::ValueId id) const { return host(layout_.root_of[graph::index(id)]); }
  // Of a constant that lies in several places: those, one behind the other. host_of() makes a copy
  // in one piece when it is first asked for.
  std::span<const Bytes> parts_of(graph::ValueId id) const {
    const ConstantBytes* const c = apart_[layout_.root_of[graph::index(id)]];
    return c == nullptr ? std::span<const Bytes>() : c->parts();
  }
  // What host_of() has copied so.
  uint64_t joined_bytes() const;
  // An input that is read where the caller has it, until the next run.
  void borrow(uint32_t root, std::byte* data) { host_[root] = data; }
  // An input that is copied into memory of the method.
  std::byte* own(uint32_t root) { return host_[root] = memory_[root].data(); }
  // Inputs that must be copied: written, or handed out again.
  bool is_staged(uint32_t root) const { return staged_[root]; }
  gpu::BufferId inbox() const { return inbox_.get(); }
  gpu::BufferId readback() const { return readback_.get(); }
  gpu::BufferId faults() const { return faults_.get(); }
  // That rule, for whichever run is submitted next: its first words.
  Status write_rule(std::span<const uint32_t> words);
  // What a binding stands for that belongs to no node; nothing for others.
  gpu::Binding bound(ops::PlannedBinding::Kind kind) const;

 private:
  std::byte* joined(uint32_t root) const;
  void take_host_memory();
  void upload_constants(const graph::Graph& g, ConstantPool& constants);

  const Layout& layout_;
  std::vector<StateRoot> state_;
  std::shared_ptr<gpu::Device> device_;
  Creations created_;
  std::vector<OwnedBuffer> owned_;  // slots, private roots
  OwnedBuffer inbox_;
  OwnedBuffer readback_;
  OwnedBuffer rule_;
  std::vector<uint32_t> rule_words_;      // that it holds
  OwnedBuffer faults_;                    // a slot for each node that reports indices
  std::vector<gpu::Binding> buffers_;     // of each root
  std::vector<ZeroedMemory> memory_;      // host memory that roots own
  cpu::Arena host_memory_;                // that roots share
  mutable std::vector<std::byte*> host_;  // where each root's host memory is
  struct HostConstant {
    uint32_t root;
    ConstantBytes bytes;
  };
  std::deque<HostConstant> host_constants_;
  std::vector<ConstantBytes*> apart_;  // of each root: a constant that lies in several places
  std::vector<bool> staged_;
  uint64_t missing_bytes_ = 0;  // of the system's memory: there was none left for so many
  bool there_ = false;
};

}  // namespace pteryx::exec
