// The beginning and the end of a device.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/native/native_device.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace pteryx::gpu::native {

NativeDevice::NativeDevice(std::shared_ptr<const Instance> instance, Caps caps, Checks checks)
    : instance_(std::move(instance)),
      caps_(std::move(caps)),
      checks_(checks),
      errors_(instance_->provider()) {}

Result<std::shared_ptr<NativeDevice>> NativeDevice::open(std::shared_ptr<const Instance> instance,
                                                         WGPUAdapter adapter, Caps caps,
                                                         Checks checks,
                                                         const PipelineCacheOptions& kept) {
  const Provider& provider = instance->provider();
  std::shared_ptr<NativeDevice> device(
      new NativeDevice(std::move(instance), std::move(caps), checks));

  std::vector<WGPUFeatureName> features;
  if (device->caps_.f16) features.push_back(WGPUFeatureName_ShaderF16);
  if (device->caps_.subgroups) features.push_back(provider.subgroups_feature());
  if (device->caps_.subgroup_matrix) features.push_back(kDawnSubgroupMatrix);
  if (device->caps_.timestamps) features.push_back(WGPUFeatureName_TimestampQuery);
  WGPULimits limits = WGPU_LIMITS_INIT;
  provider.fn().AdapterGetLimits(adapter, &limits);
  // What a mask lowered; a library may raise it to WebGPU's default again.
  const Caps& allowed = device->caps_;
  limits.maxBufferSize = std::min(limits.maxBufferSize, allowed.max_buffer_bytes);
  limits.maxStorageBufferBindingSize =
      std::min(limits.maxStorageBufferBindingSize, allowed.max_binding_bytes);
  limits.maxStorageBuffersPerShaderStage = allowed.max_storage_buffers;
  limits.maxComputeWorkgroupsPerDimension = allowed.max_workgroups_per_dim;
  limits.maxComputeInvocationsPerWorkgroup = allowed.max_invocations;
  limits.maxComputeWorkgroupSizeX = allowed.max_workgroup_size_x;
  limits.maxComputeWorkgroupStorageSize = allowed.max_workgroup_bytes;

  WGPUDeviceDescriptor desc = WGPU_DEVICE_DESCRIPTOR_INIT;
  desc.label = view("pteryx");
  desc.requiredFeatureCount = features.size();
  desc.requiredFeatures = features.data();
  desc.requiredLimits = &limits;
  device->errors_.attach(desc);
  if (!kept.folder.empty() && provider.keeps_blobs()) {
    const std::string maker = fmt::format("{}\n{}\n{}\n{}", provider.name(), provider.build(),
                                          device->caps_.adapter, device->caps_.driver);
    device->kept_ = BlobCache::open(kept.folder, maker, kept.limit_bytes);
  }
  PTERYX_ASSIGN(device->device_, provider.request_device(device->instance_->handle(), adapter, desc,
                                                         checks, device->kept_.get()));
  device->queue_ = own(provider.fn(), provider.fn().DeviceGetQueue(device->device_.get()));
  if (device->caps_.timestamps)
    device->caps_.timestamp_ns = provider.timestamp_ns(device->queue_.get());
  return device;
}

NativeDevice::~NativeDevice() {
  if (device_ == nullptr) return;
  // What the library still owes an answer to points into the slots.
  const Lock lock(gate_);
  buffers_.for_each([&](BufferSlot& buffer) {
    if (buffer.reading != Ticket::kNone) cancel(buffer.reading, "the device is closed");
  });
  end_uploads();
  // Closing is the exception: the library must be done with them.
  for (const PipelineId id : compiling_) step(*pipelines_.find(id), UINT64_MAX);
}

void NativeDevice::poll(WGPUFuture future, uint64_t timeout_ns) {
  provider().poll(instance_->handle(), device_.get(), future, timeout_ns);
}

WGPUFuture* NativeDevice::oldest_future() {
  for (const Ticket t : reading_) {
    ReadSlot& read = *reads_.find(t);
    if (read.state == ReadState::kPending) return &read.future;
  }
  for (UploadSlot& u : uploads_) {
    if (u.state == UploadSlot::State::kBusy) return &u.future;
  }
  std::erase_if(compiling_, [&](PipelineId id) {
    return pipelines_.find(id)->state != PipelineState::kCompiling;
  });
  return compiling_.empty() ? nullptr : &pipelines_.find(compiling_.front())->future;
}

// Neither library can wait for the GPU and take other calls meanwhile, so it blocks only while no
// other thread uses the device.
void NativeDevice::idle(uint64_t most_ns) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kShared(2);
  constexpr std::chrono::microseconds kNap(50);
  bool blocked = false;
  {
    const Lock lock(gate_);
    WGPUFuture* const future = oldest_future();
    blocked = future != nullptr && provider().can_block() && Clock::now() >= step_back_until_;
    if (blocked) poll(*future, most_ns);
    if (gate_.wanted()) step_back_until_ = Clock::now() + kShared;
    blocked = blocked && !gate_.wanted();
  }
  if (!blocked) std::this_thread::sleep_for(kNap);
}

void NativeDevice::complete_caps(Caps caps) {
  const Lock lock(gate_);
  caps_ = std::move(caps);
  counters_ = {};
}

void NativeDevice::drop_device() {
  const Lock lock(gate_);
  fn().DeviceDestroy(device_.get());
}

}  // namespace pteryx::gpu::native
