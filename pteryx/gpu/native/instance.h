// A WebGPU instance with the adapters it offers, and the way from an adapter to a device.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pteryx/gpu/device.h"
#include "pteryx/gpu/native/provider.h"

namespace pteryx::gpu::native {

struct AdapterRecord {
  AdapterHandle handle;
  WGPUAdapterType type = WGPUAdapterType_Unknown;
  WGPUBackendType backend = WGPUBackendType_Undefined;
  std::string name, vendor, architecture, description;
  Caps caps;  // before masking
};

class Instance {
 public:
  // Errors: kDevice.
  static Result<std::shared_ptr<const Instance>> create(const Provider& provider,
                                                        Backend backend = Backend::kDefault);

  const Provider& provider() const { return provider_; }
  WGPUInstance handle() const { return handle_.get(); }
  // Discrete first, then integrated, other, software; a GPU found twice is there once.
  std::span<const AdapterRecord> adapters() const { return adapters_; }

 private:
  explicit Instance(const Provider& provider) : provider_(provider) {}

  const Provider& provider_;
  InstanceHandle handle_;
  std::vector<AdapterRecord> adapters_;
};

// `options` say what to mask and whether to check; empty fields do not stand for the environment
// here.
Result<std::shared_ptr<Device>> open_adapter(std::shared_ptr<const Instance> instance,
                                             const AdapterRecord& adapter,
                                             const DeviceOptions& options);

std::string_view name(WGPUAdapterType type);
std::string_view name(WGPUBackendType backend);

}  // namespace pteryx::gpu::native
