// Shaders to pipelines, once each; bind group layouts and bind groups.
// SPDX-License-Identifier: BSD-3-Clause
#include <utility>

#include <fmt/format.h>

#include "pteryx/gpu/native/native_device.h"
#include "pteryx/gpu/shader_checks.h"

namespace pteryx::gpu::native {
namespace {

WGPUBufferBindingType binding_type(BindingKind kind) {
  switch (kind) {
    case BindingKind::kUniform: return WGPUBufferBindingType_Uniform;
    case BindingKind::kStorageRead: return WGPUBufferBindingType_ReadOnlyStorage;
    case BindingKind::kStorageReadWrite: return WGPUBufferBindingType_Storage;
  }
  return WGPUBufferBindingType_Undefined;
}

}  // namespace

PipelineId NativeDevice::create_pipeline(const ShaderDesc& desc) {
  const Lock lock(gate_);
  const Hash128 key = shader_key(desc);
  if (const auto it = pipeline_cache_.find(key); it != pipeline_cache_.end()) {
    // One that failed keeps its id and its error, but the same shader is compiled anew.
    if (pipelines_.find(it->second)->state != PipelineState::kFailed) {
      ++counters_.pipeline_cache_hits;
      return it->second;
    }
    pipeline_cache_.erase(it);
  }
  const PipelineId id = pipelines_.insert({.bindings = {desc.bindings.begin(), desc.bindings.end()},
                                           .label = std::string(desc.label),
                                           .failure = {},
                                           .key = key,
                                           .fn = &fn()});
  if (id == PipelineId::kNone) return id;
  ++counters_.pipelines_created;
  pipeline_cache_.emplace(key, id);
  PipelineSlot& slot = *pipelines_.find(id);
  Status s = compile(desc, slot);
  if (!s.ok()) {
    slot.failure = std::move(s);
    slot.state = PipelineState::kFailed;
  }
  if (slot.state == PipelineState::kCompiling) compiling_.push_back(id);
  return id;
}

Result<const NativeDevice::Layout*> NativeDevice::layout_for(std::span<const BindingKind> kinds) {
  std::vector<BindingKind> key(kinds.begin(), kinds.end());
  if (const auto it = layouts_.find(key); it != layouts_.end()) return &it->second;

  std::vector<WGPUBindGroupLayoutEntry> entries(kinds.size(), WGPU_BIND_GROUP_LAYOUT_ENTRY_INIT);
  for (size_t i = 0; i < kinds.size(); ++i) {
    entries[i].binding = static_cast<uint32_t>(i);
    entries[i].visibility = WGPUShaderStage_Compute;
    entries[i].buffer.type = binding_type(kinds[i]);
  }
  WGPUBindGroupLayoutDescriptor group = WGPU_BIND_GROUP_LAYOUT_DESCRIPTOR_INIT;
  group.entryCount = entries.size();
  group.entries = entries.data();
  ErrorScope errors = scope();
  Layout layout;
  layout.bind_group = own(fn(), fn().DeviceCreateBindGroupLayout(device_.get(), &group));
  WGPUBindGroupLayout const groups[] = {layout.bind_group.get()};
  WGPUPipelineLayoutDescriptor pipeline = WGPU_PIPELINE_LAYOUT_DESCRIPTOR_INIT;
  pipeline.bindGroupLayoutCount = 1;
  pipeline.bindGroupLayouts = groups;
  layout.pipeline = own(fn(), fn().DeviceCreatePipelineLayout(device_.get(), &pipeline));
  const auto caught = errors.close();
  PTERYX_TRY(errors_.take());
  if (caught) return device_error(caught->text);
  return &layouts_.emplace(std::move(key), std::move(layout)).first->second;
}

Status NativeDevice::compile(const ShaderDesc& desc, PipelineSlot& slot) {
  PTERYX_TRY(errors_.take());
  PTERYX_TRY(check_features(desc, caps_));
  auto layout = layout_for(desc.bindings);
  if (!layout.ok()) return std::move(layout).status().during(shader_error(desc.label, "layout"));
  slot.layout = (*layout)->bind_group.get();
  const auto failed = [&](const ErrorScope::Caught& caught) {
    return device_error(shader_error(slot.label, caught.text));
  };
  const std::string code = provider().directives(desc).append(desc.code);
  WGPUShaderSourceWGSL source = WGPU_SHADER_SOURCE_WGSL_INIT;
  source.code = view(code);
  WGPUShaderModuleDescriptor module_desc = WGPU_SHADER_MODULE_DESCRIPTOR_INIT;
  module_desc.nextInChain = &source.chain;
  module_desc.label = view(desc.label);
  ErrorScope module_errors = scope();
  const ModuleHandle module = provider().create_module(device_.get(), module_desc, checks_);
  // Without validation Dawn crashes on a pipeline of a module that has an error.
  if (const auto caught = module_errors.close()) return failed(*caught);

  std::vector<WGPUConstantEntry> constants;
  for (const Constant& c : desc.constants) {
    WGPUConstantEntry entry = WGPU_CONSTANT_ENTRY_INIT;
    entry.key = view(c.name);
    entry.value = c.value;
    constants.push_back(entry);
  }
  WGPUComputePipelineDescriptor wanted = WGPU_COMPUTE_PIPELINE_DESCRIPTOR_INIT;
  wanted.label = view(desc.label);
  wanted.layout = (*layout)->pipeline.get();
  wanted.compute.module = module.get();
  wanted.compute.entryPoint = view("main");
  wanted.compute.constantCount = constants.size();
  wanted.compute.constants = constants.data();

  if (!provider().compiles_in_background()) {
    ErrorScope errors = scope();
    slot.handle = own(fn(), fn().DeviceCreateComputePipeline(device_.get(), &wanted));
    if (const auto caught = errors.close()) return failed(*caught);
    slot.state = PipelineState::kReady;
    return {};
  }
  WGPUCreateComputePipelineAsyncCallbackInfo info =
      WGPU_CREATE_COMPUTE_PIPELINE_ASYNC_CALLBACK_INFO_INIT;
  info.mode = provider().callback_mode();
  info.callback = [](WGPUCreatePipelineAsyncStatus status, WGPUComputePipeline pipeline,
                     WGPUStringView message, void* user, void*) {
    auto& s = *static_cast<PipelineSlot*>(user);
    s.handle = own(*s.fn, pipeline);
    const bool ready = status == WGPUCreatePipelineAsyncStatus_Success;
    s.state = ready ? PipelineState::kReady : PipelineState::kFailed;
    if (!ready) s.failure = device_error(shader_error(s.label, text(message)));
  };
  info.userdata1 = &slot;
  slot.future = fn().DeviceCreateComputePipelineAsync(device_.get(), &wanted, info);
  return {};
}

bool NativeDevice::step(PipelineSlot& pipeline, uint64_t timeout_ns) {
  if (pipeline.state == PipelineState::kCompiling) poll(pipeline.future, timeout_ns);
  return pipeline.state != PipelineState::kCompiling;
}

Result<bool> NativeDevice::settled(PipelineId pipeline) {
  const Lock lock(gate_);
  PTERYX_TRY(errors_.take());
  if (pipeline == PipelineId::kNone)
    return memory_error("the device has no ids left for pipelines");
  PipelineSlot* const slot = pipelines_.find(pipeline);
  if (slot == nullptr) return invalid_argument("the pipeline asked about is not on this device");
  if (!step(*slot, 0)) return false;
  if (slot->state == PipelineState::kFailed) return again(slot->failure);
  return true;
}

Status NativeDevice::check(const PipelineSlot& pipeline, size_t index, const Binding& binding,
                           std::string_view label, WGPUBindGroupEntry& entry) {
  const BindingPlace place{label, pipeline.label, index, pipeline.bindings[index]};
  const BufferSlot* const buffer = buffers_.find(binding.buffer);
  if (buffer == nullptr) return binding_error(place, "its buffer is not on this device");
  if (!buffer->failure.ok()) return again(buffer->failure);
  PTERYX_ASSIGN(const uint64_t size, check_binding(place, binding, buffer->checked(), caps_));
  entry.binding = static_cast<uint32_t>(index);
  entry.buffer = buffer->handle.get();
  entry.offset = binding.offset;
  entry.size = size;
  return ok_status();
}

BindGroupId NativeDevice::create_bindings(PipelineId pipeline, std::span<const Binding> bindings,
                                          std::string_view label) {
  const Lock lock(gate_);
  auto made = bind(pipeline, bindings, label);
  BindGroupSlot slot;
  if (made.ok()) {
    slot.handle = std::move(made).value();
    ++counters_.bind_groups_created;
    ++counters_.bind_groups_alive;
  } else {
    slot.failure = std::move(made).status();
  }
  return bind_groups_.insert(std::move(slot));
}

Result<bool> NativeDevice::settled(BindGroupId bindings) {
  const Lock lock(gate_);
  PTERYX_TRY(errors_.take());
  if (bindings == BindGroupId::kNone)
    return memory_error("the device has no ids left for bindings");
  const BindGroupSlot* const slot = bind_groups_.find(bindings);
  if (slot == nullptr) return invalid_argument("the bindings asked about are not on this device");
  if (!slot->failure.ok()) return again(slot->failure);
  return true;
}

Result<BindGroupHandle> NativeDevice::bind(PipelineId pipeline, std::span<const Binding> bindings,
                                           std::string_view label) {
  PTERYX_TRY(errors_.take());
  const PipelineSlot* const slot = pipelines_.find(pipeline);
  if (slot == nullptr) {
    return invalid_argument(
        fmt::format("bindings '{}': the pipeline is not on this device", label));
  }
  if (slot->state == PipelineState::kFailed) return again(slot->failure);
  PTERYX_TRY(check_binding_count(label, slot->label, slot->bindings.size(), bindings.size()));
  std::vector<WGPUBindGroupEntry> entries(bindings.size(), WGPU_BIND_GROUP_ENTRY_INIT);
  for (size_t i = 0; i < bindings.size(); ++i) {
    PTERYX_TRY(check(*slot, i, bindings[i], label, entries[i]));
  }
  WGPUBindGroupDescriptor desc = WGPU_BIND_GROUP_DESCRIPTOR_INIT;
  desc.label = view(label);
  desc.layout = slot->layout;
  desc.entryCount = entries.size();
  desc.entries = entries.data();
  ErrorScope errors = scope();
  BindGroupHandle handle = own(fn(), fn().DeviceCreateBindGroup(device_.get(), &desc));
  const auto caught = errors.close();
  PTERYX_TRY(errors_.take());
  if (caught) {
    return device_error(
        fmt::format("bindings '{}' of shader '{}': {}", label, slot->label, caught->text));
  }
  return handle;
}

void NativeDevice::destroy(BindGroupId bindings) {
  const Lock lock(gate_);
  const BindGroupSlot* const slot = bind_groups_.find(bindings);
  PTERYX_DCHECK(slot != nullptr);
  if (slot == nullptr) return;
  if (slot->handle != nullptr) --counters_.bind_groups_alive;
  bind_groups_.erase(bindings);
}

}  // namespace pteryx::gpu::native
