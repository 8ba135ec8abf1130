// Device objects that destroy themselves.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <utility>

#include "pteryx/gpu/device.h"

namespace pteryx {

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

inline Result<OwnedBuffer> make_buffer(const std::shared_ptr<gpu::Device>& device, uint64_t size,
                                       gpu::BufferKind kind, std::string_view label) {
  PTERYX_ASSIGN(const gpu::BufferId id,
                device->create_buffer({.size = size, .kind = kind, .label = label}));
  return OwnedBuffer(device, id);
}

}  // namespace pteryx
