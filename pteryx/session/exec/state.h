// What methods keep from run to run, such as KV caches: one State for each conversation.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pteryx/base/checked.h"
#include "pteryx/graph/graph.h"
#include "pteryx/session/constant.h"
#include "pteryx/session/exec/constants.h"
#include "pteryx/session/exec/owned.h"

namespace pteryx::exec {

// What the states of a method, or of methods that share some, are made of.
struct StateForm {
  // One piece of memory. The GPU has its contents between runs where it has a buffer.
  struct Cell {
    std::string label;
    graph::Tensor tensor;  // its type and its initial value
    bool gpu = false;
    bool host = false;
    uint64_t gpu_bytes = 0;
    uint64_t host_bytes = 0;
  };
  std::string methods;  // 'prefill', 'decode'
  std::vector<Cell> cells;
  uint64_t fingerprint = 0;  // of what the methods do
};

// What the cells of a form hold at first. A value is read once, however many cells and states begin
// with it: the caches of a model usually are one and the same place of a file.
class InitialValues {
 public:
  InitialValues(std::span<const StateForm::Cell> cells, std::span<const SourcePtr> sources);

  // True once they are there. Errors: kIo, after which it can be asked again.
  Result<bool> advance();
  // Of a cell; nothing where it is zero.
  std::optional<Bytes> of(size_t cell) const;

 private:
  struct Value {
    std::optional<ConstantBytes> bytes;  // none: zero
    uint64_t size = 0;
    bool there = false;
  };
  std::deque<Value> values_;
  std::vector<Value*> of_cell_;
};

// Memory that is 0 at first, and takes none of the system's before it is touched: of a cache, what
// a conversation fills.
class ZeroedMemory {
 public:
  ZeroedMemory() = default;
  explicit ZeroedMemory(uint64_t size)
      : bytes_(fits<size_t>(size)
                   ? static_cast<std::byte*>(std::calloc(static_cast<size_t>(size), 1))
                   : nullptr),
        size_(bytes_ == nullptr ? 0 : size) {}  // empty where there is none left

  std::byte* data() const { return bytes_.get(); }
  MutableBytes bytes() const { return {bytes_.get(), static_cast<size_t>(size_)}; }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> bytes_;
  uint64_t size_ = 0;
};

class State {
 public:
  // All three outlive it.
  State(const StateForm& form, InitialValues& initial, const ConstantPool& constants);

  // Different for every state there ever was, so that what was recorded for one is not taken for
  // another.
  uint64_t id() const { return id_; }
  // True once it holds its initial values. Errors: kIo, kMemory, kDevice, kInvalidProgram.
  Result<bool> advance();
  // Puts the initial values back.
  Status reset();
  // Takes what another state of the same form holds, on the GPU. The other is there.
  Status copy(const State& other);
  // The same from bytes that StateBytes read. Errors: kInvalidArgument where they are not of a
  // state of such methods: of those whose tensors, and the places of whose weights, are the same.
  Status restore(Bytes bytes);

  // One run at a time uses it, of whichever method.
  bool is_in_use() const { return in_use_; }
  void set_in_use(bool in_use) { in_use_ = in_use; }

  // Of a cell: where it is.
  gpu::BufferId buffer(uint32_t cell) const { return parts_[cell].buffer.get(); }
  std::byte* memory(uint32_t cell) const { return parts_[cell].memory.data(); }

 private:
  friend class StateBytes;
  struct Part {
    OwnedBuffer buffer;   // where the GPU uses it
    ZeroedMemory memory;  // where the host does
  };
  // As the GPU has it, where it has it.
  uint64_t part_bytes(size_t i) const {
    const StateForm::Cell& c = form_.cells[i];
    return c.gpu ? c.gpu_bytes : c.host_bytes;
  }
  Status write_initial(size_t i);

  const StateForm& form_;
  InitialValues& initial_;
  std::shared_ptr<gpu::Device> device_;
  uint64_t id_;
  std::vector<Part> parts_;
  Creations created_;
  bool there_ = false;
  bool filled_ = false;  // with something else than its initial values
  bool in_use_ = false;
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
