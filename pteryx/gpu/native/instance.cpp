// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/native/instance.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pteryx/gpu/native/native_device.h"
#include "pteryx/gpu/native/probe.h"
#include "pteryx/gpu/native/sizes.h"

namespace pteryx::gpu::native {
namespace {

AdapterKind kind(WGPUAdapterType type) {
  switch (type) {
    case WGPUAdapterType_DiscreteGPU: return AdapterKind::kDiscrete;
    case WGPUAdapterType_IntegratedGPU: return AdapterKind::kIntegrated;
    case WGPUAdapterType_CPU: return AdapterKind::kSoftware;
    default: return AdapterKind::kUnknown;
  }
}

Caps read_caps(const Provider& provider, WGPUInstance instance, WGPUAdapter adapter,
               const WGPUAdapterInfo& info) {
  const Functions& fn = provider.fn();
  WGPULimits limits = WGPU_LIMITS_INIT;
  fn.AdapterGetLimits(adapter, &limits);
  const auto has = [&](WGPUFeatureName f) {
    return fn.AdapterHasFeature(adapter, f) != WGPU_FALSE;
  };

  Caps caps;
  caps.f16 = has(WGPUFeatureName_ShaderF16);
  caps.subgroups = has(provider.subgroups_feature());
  if (caps.subgroups) {
    caps.subgroup_min = info.subgroupMinSize;
    caps.subgroup_max = info.subgroupMaxSize;
  }
  caps.subgroup_matrix = caps.f16 && caps.subgroups && provider.has_subgroup_matrix(adapter);
  caps.dot4 = provider.has_language_feature(instance,
                                            WGPUWGSLLanguageFeatureName_Packed4x8IntegerDotProduct);
  caps.timestamps = has(WGPUFeatureName_TimestampQuery);
  caps.software = info.adapterType == WGPUAdapterType_CPU;

  caps.max_buffer_bytes = limits.maxBufferSize / 4 * 4;  // some report 2^32 - 1
  caps.max_binding_bytes = limits.maxStorageBufferBindingSize / 4 * 4;
  caps.max_storage_buffers = limits.maxStorageBuffersPerShaderStage;
  caps.max_workgroups_per_dim = limits.maxComputeWorkgroupsPerDimension;
  caps.max_invocations = limits.maxComputeInvocationsPerWorkgroup;
  caps.max_workgroup_size_x = limits.maxComputeWorkgroupSizeX;
  caps.max_workgroup_bytes = limits.maxComputeWorkgroupStorageSize;
  caps.uniform_alignment = limits.minUniformBufferOffsetAlignment;
  caps.storage_alignment = limits.minStorageBufferOffsetAlignment;

  caps.adapter = text(info.device);
  caps.sizes = usual_sizes(kind(info.adapterType), caps.adapter);
  caps.provider = provider.name();
  caps.driver = text(info.description);
  return caps;
}

AdapterRecord describe(const Provider& provider, WGPUInstance instance, AdapterHandle handle) {
  WGPUAdapterInfo info = WGPU_ADAPTER_INFO_INIT;
  provider.fn().AdapterGetInfo(handle.get(), &info);
  AdapterRecord record;
  record.type = info.adapterType;
  record.backend = info.backendType;
  record.name = text(info.device);
  record.vendor = text(info.vendor);
  record.architecture = text(info.architecture);
  record.description = text(info.description);
  record.caps = read_caps(provider, instance, handle.get(), info);
  record.handle = std::move(handle);
  provider.fn().AdapterInfoFreeMembers(info);
  return record;
}

int rank(const AdapterRecord& adapter) {
  switch (adapter.type) {
    case WGPUAdapterType_DiscreteGPU: return 0;
    case WGPUAdapterType_IntegratedGPU: return 1;
    case WGPUAdapterType_CPU: return 3;
    default: return 2;
  }
}

bool same(const AdapterRecord& a, const AdapterRecord& b) {
  return a.type == b.type && a.backend == b.backend && a.name == b.name &&
         a.description == b.description;
}

}  // namespace

Result<std::shared_ptr<const Instance>> Instance::create(const Provider& provider,
                                                         Backend backend) {
  std::shared_ptr<Instance> instance(new Instance(provider));
  instance->handle_ = provider.create_instance();
  if (instance->handle_ == nullptr) return device_error("no WebGPU instance could be created");
  // Only Dawn repeats an adapter; wgpu-native lists two equal cards as two.
  const bool may_repeat = provider.kind() == ProviderKind::kDawn;
  for (AdapterHandle& handle : provider.find_adapters(instance->handle(), backend)) {
    AdapterRecord adapter = describe(provider, instance->handle(), std::move(handle));
    // Dawn falls back to its null backend when it finds no GPU; that computes nothing.
    const bool null = adapter.backend == WGPUBackendType_Null;
    if (null != (backend == Backend::kNull)) continue;
    const auto is_same = [&](const AdapterRecord& other) { return same(adapter, other); };
    if (may_repeat && std::ranges::any_of(instance->adapters_, is_same)) continue;
    const auto at = std::ranges::upper_bound(instance->adapters_, rank(adapter), {}, rank);
    instance->adapters_.insert(at, std::move(adapter));
  }
  return std::shared_ptr<const Instance>(std::move(instance));
}

Result<std::shared_ptr<Device>> open_adapter(std::shared_ptr<const Instance> instance,
                                             const AdapterRecord& adapter,
                                             const DeviceOptions& options) {
  Caps caps = adapter.caps;
  caps.bounds_checks = options.bounds_checks;
  PTERYX_TRY(mask_caps(caps, options.disable));
  if (options.sizes) {
    caps.sizes = *options.sizes;
  } else if (const auto kept = kept_sizes(options.folder, caps.adapter)) {
    caps.sizes = *kept;
  }
  const Checks checks = options.bounds_checks ? Checks::kOn : Checks::kOff;
  PTERYX_ASSIGN(std::shared_ptr<NativeDevice> device,
                NativeDevice::open(std::move(instance), adapter.handle.get(), std::move(caps),
                                   checks, options.pipeline_cache));
  PTERYX_TRY(probe(*device, options.disable));
  return std::shared_ptr<Device>(std::move(device));
}

std::string_view name(WGPUAdapterType type) {
  switch (type) {
    case WGPUAdapterType_DiscreteGPU: return "discrete";
    case WGPUAdapterType_IntegratedGPU: return "integrated";
    case WGPUAdapterType_CPU: return "software";
    default: return "unknown";
  }
}

std::string_view name(WGPUBackendType backend) {
  switch (backend) {
    case WGPUBackendType_Null: return "null";
    case WGPUBackendType_WebGPU: return "webgpu";
    case WGPUBackendType_D3D11: return "d3d11";
    case WGPUBackendType_D3D12: return "d3d12";
    case WGPUBackendType_Metal: return "metal";
    case WGPUBackendType_Vulkan: return "vulkan";
    case WGPUBackendType_OpenGL: return "opengl";
    case WGPUBackendType_OpenGLES: return "opengles";
    default: return "unknown";
  }
}

}  // namespace pteryx::gpu::native
