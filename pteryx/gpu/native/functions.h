// The functions of webgpu.h that Pteryx calls, as a table: a library is opened at run time and two
// may be open at once.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#define WGPU_SKIP_DECLARATIONS
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <webgpu/webgpu.h>
#include <webgpu/wgpu.h>

namespace pteryx::gpu::native {

// A list, so that the table and its loading cannot disagree.
#define PTERYX_WEBGPU_FUNCTIONS(X)        \
  X(CreateInstance)                       \
  X(InstanceRelease)                      \
  X(InstanceProcessEvents)                \
  X(InstanceRequestAdapter)               \
  X(InstanceWaitAny)                      \
  X(InstanceHasWGSLLanguageFeature)       \
  X(AdapterGetInfo)                       \
  X(AdapterGetLimits)                     \
  X(AdapterHasFeature)                    \
  X(AdapterInfoFreeMembers)               \
  X(AdapterRelease)                       \
  X(AdapterRequestDevice)                 \
  X(DeviceCreateBindGroup)                \
  X(DeviceCreateBindGroupLayout)          \
  X(DeviceCreateBuffer)                   \
  X(DeviceCreateCommandEncoder)           \
  X(DeviceCreateComputePipeline)          \
  X(DeviceCreateComputePipelineAsync)     \
  X(DeviceCreatePipelineLayout)           \
  X(DeviceCreateQuerySet)                 \
  X(DeviceCreateShaderModule)             \
  X(DeviceDestroy)                        \
  X(DeviceGetQueue)                       \
  X(DevicePopErrorScope)                  \
  X(DevicePushErrorScope)                 \
  X(DeviceRelease)                        \
  X(QuerySetRelease)                      \
  X(QueueRelease)                         \
  X(QueueSubmit)                          \
  X(QueueWriteBuffer)                     \
  X(BufferGetConstMappedRange)            \
  X(BufferGetMappedRange)                 \
  X(BufferMapAsync)                       \
  X(BufferRelease)                        \
  X(BufferUnmap)                          \
  X(ShaderModuleRelease)                  \
  X(BindGroupLayoutRelease)               \
  X(PipelineLayoutRelease)                \
  X(ComputePipelineRelease)               \
  X(BindGroupRelease)                     \
  X(CommandEncoderBeginComputePass)       \
  X(CommandEncoderCopyBufferToBuffer)     \
  X(CommandEncoderFinish)                 \
  X(CommandEncoderResolveQuerySet)        \
  X(CommandEncoderRelease)                \
  X(ComputePassEncoderDispatchWorkgroups) \
  X(ComputePassEncoderEnd)                \
  X(ComputePassEncoderRelease)            \
  X(ComputePassEncoderSetBindGroup)       \
  X(ComputePassEncoderSetPipeline)        \
  X(CommandBufferRelease)

// Dawn's own structures and numbers, which the common header does not have.
inline constexpr auto kDawnInstanceType = static_cast<WGPUSType>(0x00050006);
inline constexpr auto kDawnCacheType = static_cast<WGPUSType>(0x00050007);
inline constexpr auto kDawnTogglesType = static_cast<WGPUSType>(0x0005000A);
inline constexpr auto kDawnFakeBufferOutOfMemoryType = static_cast<WGPUSType>(0x00050040);
inline constexpr auto kDawnSubgroupMatrixConfigsType = static_cast<WGPUSType>(0x0005003B);
inline constexpr auto kDawnSubgroupMatrix = static_cast<WGPUFeatureName>(0x00050034);

// Options of an instance. Older versions end before `log`, or have a null callback there.
struct DawnInstance {
  WGPUChainedStruct chain = {nullptr, kDawnInstanceType};
  uint32_t search_path_count = 0;
  const char* const* search_paths = nullptr;
  void* platform = nullptr;
  uint32_t validation = 2;  // of the driver's layers: off
  bool capture = false;
  void* log_chain = nullptr;
  void (*log)(uint32_t type, WGPUStringView message, void*, void*) = nullptr;
  void* log_data[2] = {};
};
struct DawnToggles {
  WGPUChainedStruct chain = {nullptr, kDawnTogglesType};
  size_t enabled_count = 0;
  const char* const* enabled = nullptr;
  size_t disabled_count = 0;
  const char* const* disabled = nullptr;
};
// Where a device keeps what it compiled; called from the library's threads, too. Older versions
// have functions of other arguments here: they find no `load`, and call it as their `store` with
// the address of a key as its size, which BlobCache takes for none.
struct DawnCache {
  WGPUChainedStruct chain = {nullptr, kDawnCacheType};
  WGPUStringView isolation_key = {nullptr, 0};
  void* load_chain = nullptr;
  size_t (*load)(size_t key_size, const uint8_t* key, size_t value_size, uint8_t* value, void* user,
                 void*) = nullptr;
  void* load_data[2] = {};
  void* store_chain = nullptr;
  void (*store)(size_t key_size, const uint8_t* key, size_t value_size, const uint8_t* value,
                void* user, void*) = nullptr;
  void* store_data[2] = {};
};
enum class DawnMatrixType : uint32_t { kF32 = 1, kF16 = 2 };
struct DawnMatrixConfig {
  DawnMatrixType component;
  DawnMatrixType result;
  uint32_t m, n, k;
};
struct DawnSubgroupMatrixConfigs {
  WGPUChainedStruct chain = {nullptr, kDawnSubgroupMatrixConfigsType};
  size_t count = 0;
  const DawnMatrixConfig* configs = nullptr;
};
struct DawnFakeBufferOutOfMemory {
  WGPUChainedStruct chain = {nullptr, kDawnFakeBufferOutOfMemoryType};
  WGPUBool at_wire_map = false;
  WGPUBool at_native_map = false;
  WGPUBool at_device = true;
};

struct Functions {
#define PTERYX_WEBGPU_MEMBER(name) WGPUProc##name name = nullptr;
  PTERYX_WEBGPU_FUNCTIONS(PTERYX_WEBGPU_MEMBER)
#undef PTERYX_WEBGPU_MEMBER

  // wgpu-native only.
  decltype(&::wgpuDevicePoll) DevicePoll = nullptr;
  decltype(&::wgpuInstanceEnumerateAdapters) InstanceEnumerateAdapters = nullptr;
  decltype(&::wgpuDeviceCreateShaderModuleTrusted) DeviceCreateShaderModuleTrusted = nullptr;
  decltype(&::wgpuGetVersion) GetVersion = nullptr;
  decltype(&::wgpuQueueGetTimestampPeriod) QueueGetTimestampPeriod = nullptr;
  // Dawn only.
  void (*AdapterPropertiesSubgroupMatrixConfigsFreeMembers)(DawnSubgroupMatrixConfigs) = nullptr;
};

inline WGPUStringView view(std::string_view s) { return {s.data(), s.size()}; }
inline std::string_view text(WGPUStringView s) {
  if (s.data == nullptr) return {};
  return s.length == WGPU_STRLEN ? std::string_view(s.data) : std::string_view(s.data, s.length);
}

}  // namespace pteryx::gpu::native
