// Constants on the GPU, shared by every method of a session.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pteryx/base/source.h"
#include "pteryx/graph/graph.h"
#include "pteryx/ops/op.h"
#include "pteryx/session/constant.h"
#include "pteryx/session/constant_pieces.h"
#include "pteryx/session/exec/owned.h"

namespace pteryx::exec {

// A place is known at once, so that plans can bind it; its bytes are there once advance() has said
// so. Uploads come before other layouts, which are made from uploaded constants. What is uploaded
// lies in few buffers, because a library looks at every buffer of a dispatch whenever it is encoded
// and submitted.
class ConstantPool {
 public:
  // Hears of bytes that reached the device; its error ends advance().
  using OnBytes = std::function<Status(uint64_t bytes)>;

  ConstantPool(std::shared_ptr<gpu::Device> device, std::vector<SourcePtr> sources)
      : device_(std::move(device)), sources_(std::move(sources)) {}
  std::span<const SourcePtr> sources() const { return sources_; }
  const std::shared_ptr<gpu::Device>& device() const { return device_; }
  void on_bytes(OnBytes f) { on_bytes_ = std::move(f); }

  struct Wanted {
    const graph::Tensor* tensor = nullptr;
    std::string_view label;
  };
  // Where each of these constants is, found or begun.
  std::vector<gpu::Binding> upload(std::span<const Wanted> wanted);
  // The same bytes in another layout, made from the uploaded ones by its dispatch.
  gpu::Binding relaid(const graph::Tensor& t, const gpu::Binding& source,
                      const ops::PlannedConstant& wanted);
  // True once everything asked for is there. Errors: kIo, kMemory, kDevice, kInvalidProgram; what
  // failed is forgotten, and can be asked for again.
  Result<bool> advance();
  bool is_uploading() const { return !uploads_.empty(); }

 private:
  using RelaidId = std::pair<ConstantId, std::string>;
  struct Upload {
    std::vector<ByteRange> data;
    std::string label;
    gpu::Binding at;
    std::unique_ptr<ConstantPieces> host;  // bytes that change on their way
    size_t part = 0;                       // to be written next, and how much of it was
    uint64_t of_part = 0;
    uint64_t offset = 0;  // from where it is
    uint64_t counted = 0;
    bool done = false;
  };
  struct Place {
    gpu::Binding at;
    std::shared_ptr<const OwnedBuffer> buffer;  // shared with its neighbours
  };
  struct Relaid {
    RelaidId id;
    OwnedBuffer params;
    OwnedBindings bindings;
    gpu::Dispatch dispatch;
    Creations created;
    bool done = false;
  };

  void place(std::span<const Wanted> together, uint64_t bytes);
  void forget(const Upload& u);
  void forget(const Relaid& r);
  Result<bool> step(Upload& u);
  Result<bool> step(Relaid& r);
  Result<bool> write_host(Upload& u);
  Status count(Upload& u);
  template <typename Job>
  Result<bool> step_all(std::vector<Job>& jobs);

  std::shared_ptr<gpu::Device> device_;
  std::vector<SourcePtr> sources_;
  OnBytes on_bytes_;
  std::map<ConstantId, Place> places_;
  std::map<RelaidId, OwnedBuffer> relaid_;
  std::vector<Upload> uploads_;
  uint64_t awaited_bytes_ = 0;  // of pieces that were asked for in this turn
  std::vector<Relaid> relaying_;
};

}  // namespace pteryx::exec
