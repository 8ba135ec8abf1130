// Device objects that destroy themselves.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "pteryx/gpu/device.h"

namespace pteryx::exec {

template <typename Id>
class Owned {
 public:
  Owned() = default;
  Owned(std::shared_ptr<gpu::Device> device, Id id) : device_(std::move(device)), id_(id) {}
  Owned(Owned&& other) noexcept
      : device_(std::move(other.device_)), id_(std::exchange(other.id_, Id::kNone)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(id_, other.id_);
    return *this;
  }
  ~Owned() {
    if (id_ != Id::kNone) device_->destroy(id_);
  }
  Id get() const { return id_; }

 private:
  std::shared_ptr<gpu::Device> device_;
  Id id_ = Id::kNone;
};
using OwnedBuffer = Owned<gpu::BufferId>;
using OwnedBindings = Owned<gpu::BindGroupId>;

// Objects that were created and may not be there yet.
class Creations {
 public:
  OwnedBuffer buffer(const std::shared_ptr<gpu::Device>& device, uint64_t size,
                     gpu::BufferKind kind, std::string_view label) {
    const gpu::BufferId id = device->create_buffer({.size = size, .kind = kind, .label = label});
    buffers_.push_back(id);
    return {device, id};
  }
  OwnedBindings dispatch(const std::shared_ptr<gpu::Device>& device, const gpu::Dispatch& d) {
    pipelines_.push_back(d.pipeline);
    bindings_.push_back(d.bindings);
    return {device, d.bindings};
  }
  void pipeline(gpu::PipelineId id) { pipelines_.push_back(id); }
  // The answer to a write into one of them.
  void write(Status s) {
    if (written_.ok()) written_ = std::move(s);
  }
  // False: ask again. Errors: those of Device::settled and of writes.
  Result<bool> settled(gpu::Device& device) {
    PTERYX_TRY(std::exchange(written_, Status()));
    PTERYX_ASSIGN(const bool buffers, settled(device, buffers_));
    PTERYX_ASSIGN(const bool pipelines, settled(device, pipelines_));
    PTERYX_ASSIGN(const bool bindings, settled(device, bindings_));
    return buffers && pipelines && bindings;
  }

 private:
  template <typename Id>
  static Result<bool> settled(gpu::Device& device, std::vector<Id>& ids) {
    while (!ids.empty()) {
      PTERYX_ASSIGN(const bool there, device.settled(ids.back()));
      if (!there) return false;
      ids.pop_back();
    }
    return true;
  }

  Status written_;
  std::vector<gpu::BufferId> buffers_;
  std::vector<gpu::PipelineId> pipelines_;
  std::vector<gpu::BindGroupId> bindings_;
};

}  // namespace pteryx::exec
