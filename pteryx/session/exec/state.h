// What a method keeps from run to run, such as KV caches: one State for each conversation.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "pteryx/graph/graph.h"
#include "pteryx/session/constant.h"
#include "pteryx/session/exec/constants.h"
#include "pteryx/session/exec/owned.h"
#include "pteryx/session/layout.h"

namespace pteryx::exec {

class State {
 public:
  // The graph, the layout and the pool outlive it.
  State(const graph::Graph& g, const Layout& layout, const ConstantPool& constants);

  // Different for every state there ever was, so that what was recorded for one is not taken for
  // another.
  uint64_t id() const { return id_; }
  // True once it holds its initial values. Errors: kIo, kMemory, kDevice, kInvalidProgram.
  Result<bool> advance();
  // Puts the initial values back.
  Status reset();
  // Takes what another state of the same method holds, on the GPU. The other is there.
  Status copy(const State& other);
  // The same from bytes that StateBytes read. Errors: kInvalidArgument where they are not of a
  // state of such a method: one whose tensors, and the places of whose weights, are the same.
  Status restore(Bytes bytes);

  struct Part {
    uint32_t root = 0;
    OwnedBuffer buffer;                    // where the GPU uses it
    std::vector<std::byte> memory;         // where the host does
    std::optional<ConstantBytes> initial;  // none: zero
  };
  std::span<Part> parts() { return parts_; }

 private:
  friend class StateBytes;
  uint64_t part_bytes(const Part& p) const;
  uint64_t fingerprint() const;
  Status write_initial(Part& p);

  const graph::Graph& graph_;
  const Layout& layout_;
  std::shared_ptr<gpu::Device> device_;
  uint64_t id_;
  std::vector<Part> parts_;
  Creations created_;
  bool there_ = false;
  bool filled_ = false;  // with something else than its initial values
};

// The contents of a state, read back piece by piece.
class StateBytes {
 public:
  // The state, which is there, stays as it is until this is done.
  StateBytes(const State& state, std::shared_ptr<gpu::Device> device);
  ~StateBytes();

  // Errors: kMemory, kDevice.
  Result<bool> advance();
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  const State& state_;
  std::shared_ptr<gpu::Device> device_;
  Creations created_;
  OwnedBuffer readback_;
  gpu::Ticket ticket_ = gpu::Ticket::kNone;
  size_t part_ = 0;
  uint64_t of_part_ = 0;
  uint64_t chunk_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace pteryx::exec
