// Owners of WebGPU objects: each releases through the table of the library that made the object.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "pteryx/gpu/native/functions.h"

namespace pteryx::gpu::native {

template <typename Impl>
struct Releaser {
  void (*release)(Impl*) = nullptr;
  void operator()(Impl* handle) const { release(handle); }
};
template <typename Impl>
using Handle = std::unique_ptr<Impl, Releaser<Impl>>;

using InstanceHandle = Handle<WGPUInstanceImpl>;
using AdapterHandle = Handle<WGPUAdapterImpl>;
using DeviceHandle = Handle<WGPUDeviceImpl>;
using QueueHandle = Handle<WGPUQueueImpl>;
using BufferHandle = Handle<WGPUBufferImpl>;
using ModuleHandle = Handle<WGPUShaderModuleImpl>;
using LayoutHandle = Handle<WGPUBindGroupLayoutImpl>;
using PipelineLayoutHandle = Handle<WGPUPipelineLayoutImpl>;
using PipelineHandle = Handle<WGPUComputePipelineImpl>;
using BindGroupHandle = Handle<WGPUBindGroupImpl>;
using EncoderHandle = Handle<WGPUCommandEncoderImpl>;
using PassHandle = Handle<WGPUComputePassEncoderImpl>;
using CommandsHandle = Handle<WGPUCommandBufferImpl>;
using QuerySetHandle = Handle<WGPUQuerySetImpl>;

// Takes the reference that a wgpu…Create… call returned.
inline InstanceHandle own(const Functions& fn, WGPUInstance h) { return {h, {fn.InstanceRelease}}; }
inline AdapterHandle own(const Functions& fn, WGPUAdapter h) { return {h, {fn.AdapterRelease}}; }
inline DeviceHandle own(const Functions& fn, WGPUDevice h) { return {h, {fn.DeviceRelease}}; }
inline QueueHandle own(const Functions& fn, WGPUQueue h) { return {h, {fn.QueueRelease}}; }
inline BufferHandle own(const Functions& fn, WGPUBuffer h) { return {h, {fn.BufferRelease}}; }
inline ModuleHandle own(const Functions& fn, WGPUShaderModule h) {
  return {h, {fn.ShaderModuleRelease}};
}
inline LayoutHandle own(const Functions& fn, WGPUBindGroupLayout h) {
  return {h, {fn.BindGroupLayoutRelease}};
}
inline PipelineLayoutHandle own(const Functions& fn, WGPUPipelineLayout h) {
  return {h, {fn.PipelineLayoutRelease}};
}
inline PipelineHandle own(const Functions& fn, WGPUComputePipeline h) {
  return {h, {fn.ComputePipelineRelease}};
}
inline BindGroupHandle own(const Functions& fn, WGPUBindGroup h) {
  return {h, {fn.BindGroupRelease}};
}
inline EncoderHandle own(const Functions& fn, WGPUCommandEncoder h) {
  return {h, {fn.CommandEncoderRelease}};
}
inline PassHandle own(const Functions& fn, WGPUComputePassEncoder h) {
  return {h, {fn.ComputePassEncoderRelease}};
}
inline QuerySetHandle own(const Functions& fn, WGPUQuerySet h) { return {h, {fn.QuerySetRelease}}; }
inline CommandsHandle own(const Functions& fn, WGPUCommandBuffer h) {
  return {h, {fn.CommandBufferRelease}};
}

}  // namespace pteryx::gpu::native
