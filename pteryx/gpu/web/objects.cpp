// Buffers, what is written into them, pipelines and bind groups. SPDX-License-Identifier:
// BSD-3-Clause
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "pteryx/base/checked.h"
#include "pteryx/gpu/web/imports.h"
#include "pteryx/gpu/web/web_device.h"

namespace pteryx::gpu::web {

using pteryx::web::settle;

// ---------------------------------------------------------------- buffers

BufferId WebDevice::create_buffer(const BufferDesc& desc) {
  const uint64_t unit = desc.kind == BufferKind::kStorage ? 16 : 4;
  const bool fits = desc.size <= caps_.max_buffer_bytes;
  const uint64_t size = fits ? align_up(std::max(desc.size, unit), unit) : desc.size;
  const BufferId id =
      buffers_.insert({.size = size, .kind = desc.kind, .label = std::string(desc.label)});
  if (id == BufferId::kNone) return id;
  if (!fits) {
    buffers_.find(id)->failure =
        memory_error(fmt::format("buffer '{}' of {} bytes: max_buffer_bytes of the device is {}",
                                 desc.label, desc.size, caps_.max_buffer_bytes));
    return id;
  }
  pteryx_gpu_buffer_create(device_, id, static_cast<double>(size), static_cast<uint32_t>(desc.kind),
                           desc.label.data(), desc.label.size());
  ++counters_.buffers_created;
  ++counters_.buffers_alive;
  counters_.buffer_bytes_alive += size;
  return id;
}

void WebDevice::destroy(BufferId buffer) {
  BufferSlot* const slot = buffers_.find(buffer);
  PTERYX_DCHECK(slot != nullptr);
  if (slot == nullptr) return;
  if (slot->reading != Ticket::kNone) cancel(slot->reading);
  if (slot->size <= caps_.max_buffer_bytes) {  // larger ones were never made
    pteryx_gpu_buffer_destroy(device_, buffer);
    --counters_.buffers_alive;
    counters_.buffer_bytes_alive -= slot->size;
  }
  buffers_.erase(buffer);
}

Result<WebDevice::BufferSlot*> WebDevice::find(BufferId buffer, std::string_view what) {
  if (buffer == BufferId::kNone) return memory_error("the device has no ids left for buffers");
  BufferSlot* const slot = buffers_.find(buffer);
  if (slot == nullptr) return not_on_this_device(what);
  if (!slot->failure.ok()) return again(slot->failure);
  return slot;
}

Result<bool> WebDevice::settled(BufferId buffer) {
  PTERYX_TRY(take_error());
  PTERYX_ASSIGN(BufferSlot* const slot, find(buffer, "the buffer asked about"));
  auto written = step_writes(buffer, *slot);
  auto there = written.ok() ? settle(pteryx_gpu_buffer_answer(device_, buffer))
                            : Result<bool>(std::move(written).status());
  if (there.ok()) return *there && slot->writes.empty();
  slot->failure =
      Status(there.status().code(), fmt::format("buffer '{}' of {} bytes: {}", slot->label,
                                                slot->size, there.status().message()));
  slot->writes.clear();
  return again(slot->failure);
}

Result<WebDevice::BufferSlot*> WebDevice::find_written(BufferId buffer, uint64_t offset,
                                                       uint64_t size) {
  PTERYX_ASSIGN(BufferSlot* const slot, find(buffer, "the buffer written"));
  PTERYX_TRY(check_write(slot->checked(), offset, size));
  ++counters_.writes;
  counters_.write_bytes += size;
  return slot;
}

void WebDevice::put(BufferId buffer, uint64_t offset, Bytes bytes) {
  const size_t body = bytes.size() / 4 * 4;
  if (body > 0) pteryx_gpu_write(device_, buffer, static_cast<double>(offset), bytes.data(), body);
  if (body == bytes.size()) return;
  std::array<std::byte, 4> last = {};
  std::memcpy(last.data(), bytes.data() + body, bytes.size() - body);
  pteryx_gpu_write(device_, buffer, static_cast<double>(offset + body), last.data(), last.size());
}

Status WebDevice::write(BufferId buffer, uint64_t offset, Bytes bytes) {
  PTERYX_ASSIGN(const BufferSlot* const slot, find_written(buffer, offset, bytes.size()));
  static_cast<void>(slot);
  put(buffer, offset, bytes);
  return {};
}

Status WebDevice::write(BufferId buffer, uint64_t offset, const SourcePtr& source, uint64_t from,
                        uint64_t size) {
  PTERYX_ASSIGN(BufferSlot* const slot, find_written(buffer, offset, size));
  if (size == 0) return {};
  if (const auto host = source->host_range(from, size); host && slot->writes.empty()) {
    pteryx_gpu_write_source(device_, buffer, static_cast<double>(offset), host->source,
                            static_cast<double>(host->offset), static_cast<double>(size));
    return {};
  }
  slot->writes.push_back({.source = source, .from = from, .size = size, .offset = offset});
  return {};
}

// In their order, a part at a time.
Result<bool> WebDevice::step_writes(BufferId buffer, BufferSlot& slot) {
  constexpr uint64_t kPart = uint64_t{1} << 20;
  while (!slot.writes.empty()) {
    SourceWrite& w = slot.writes.front();
    const uint64_t size = std::min(w.size, kPart);
    part_.resize(size);
    PTERYX_ASSIGN(const bool there, w.source->read(w.from, part_));
    if (!there) return false;
    put(buffer, w.offset, part_);
    w.from += size;
    w.offset += size;
    w.size -= size;
    if (w.size == 0) slot.writes.erase(slot.writes.begin());
  }
  return true;
}

// ---------------------------------------------------------------- pipelines

PipelineId WebDevice::create_pipeline(const ShaderDesc& desc) {
  const Hash128 key = shader_key(desc);
  if (const auto it = pipeline_cache_.find(key); it != pipeline_cache_.end()) {
    if (pipelines_.find(it->second)->state != PipelineState::kFailed) {
      ++counters_.pipeline_cache_hits;
      return it->second;
    }
    pipeline_cache_.erase(it);  // compiled anew
  }
  const PipelineId id = pipelines_.insert(
      {.bindings = {desc.bindings.begin(), desc.bindings.end()}, .label = std::string(desc.label)});
  if (id == PipelineId::kNone) return id;
  pipeline_cache_.emplace(key, id);
  PipelineSlot& slot = *pipelines_.find(id);
  if (Status s = check_features(desc, caps_); !s.ok()) {
    slot.failure = std::move(s);
    slot.state = PipelineState::kFailed;
    return id;
  }
  std::string code;
  if (desc.uses_f16) code += "enable f16; ";
  if (desc.uses_subgroups) code += "enable subgroups; ";
  code += desc.code;
  std::vector<WebConstant> constants;
  constants.reserve(desc.constants.size());
  for (const Constant& c : desc.constants)
    constants.push_back({c.name.data(), c.name.size(), c.value});
  pteryx_gpu_pipeline_create(device_, id, desc.label.data(), desc.label.size(), code.data(),
                             code.size(), constants.data(), constants.size(), desc.bindings.data(),
                             desc.bindings.size());
  ++counters_.pipelines_created;
  ++counters_.pipelines_compiling;
  return id;
}

Result<bool> WebDevice::settled(PipelineId pipeline) {
  PTERYX_TRY(take_error());
  if (pipeline == PipelineId::kNone)
    return memory_error("the device has no ids left for pipelines");
  PipelineSlot* const slot = pipelines_.find(pipeline);
  if (slot == nullptr) return not_on_this_device("the pipeline asked about");
  if (slot->state == PipelineState::kReady) return true;
  if (slot->state == PipelineState::kFailed) return again(slot->failure);
  auto there = settle(pteryx_gpu_pipeline_answer(device_, pipeline));
  if (there.ok() && !*there) return false;
  --counters_.pipelines_compiling;
  slot->state = there.ok() ? PipelineState::kReady : PipelineState::kFailed;
  if (there.ok()) return true;
  slot->failure =
      Status(there.status().code(), shader_error(slot->label, there.status().message()));
  return again(slot->failure);
}

// ---------------------------------------------------------------- bind groups

Status WebDevice::bind(BindGroupId id, PipelineId pipeline, std::span<const Binding> bindings,
                       std::string_view label) {
  const PipelineSlot* const slot = pipelines_.find(pipeline);
  if (slot == nullptr)
    return not_on_this_device(fmt::format("the pipeline of bindings '{}'", label));
  if (slot->state == PipelineState::kFailed) return again(slot->failure);
  PTERYX_TRY(check_binding_count(label, slot->label, slot->bindings.size(), bindings.size()));
  std::vector<WebBinding> entries;
  entries.reserve(bindings.size());
  for (size_t i = 0; i < bindings.size(); ++i) {
    const BindingPlace place{label, slot->label, i, slot->bindings[i]};
    const BufferSlot* const buffer = buffers_.find(bindings[i].buffer);
    if (buffer == nullptr) return binding_error(place, "its buffer is not on this device");
    if (!buffer->failure.ok()) return again(buffer->failure);
    PTERYX_ASSIGN(const uint64_t size, check_binding(place, bindings[i], buffer->checked(), caps_));
    entries.push_back({bindings[i].buffer, 0, bindings[i].offset, size});
  }
  pteryx_gpu_bind_group_create(device_, id, pipeline, label.data(), label.size(), entries.data(),
                               entries.size());
  return {};
}

BindGroupId WebDevice::create_bindings(PipelineId pipeline, std::span<const Binding> bindings,
                                       std::string_view label) {
  const BindGroupId id = bind_groups_.insert({});
  if (id == BindGroupId::kNone) return id;
  BindGroupSlot& slot = *bind_groups_.find(id);
  slot.failure = bind(id, pipeline, bindings, label);
  if (slot.failure.ok()) {
    ++counters_.bind_groups_created;
    ++counters_.bind_groups_alive;
  }
  return id;
}

Result<bool> WebDevice::settled(BindGroupId bindings) {
  PTERYX_TRY(take_error());
  if (bindings == BindGroupId::kNone)
    return memory_error("the device has no ids left for bindings");
  const BindGroupSlot* const slot = bind_groups_.find(bindings);
  if (slot == nullptr) return not_on_this_device("the bindings asked about");
  if (!slot->failure.ok()) return again(slot->failure);
  return true;
}

void WebDevice::destroy(BindGroupId bindings) {
  const BindGroupSlot* const slot = bind_groups_.find(bindings);
  PTERYX_DCHECK(slot != nullptr);
  if (slot == nullptr) return;
  if (slot->failure.ok()) {
    pteryx_gpu_bind_group_destroy(device_, bindings);
    --counters_.bind_groups_alive;
  }
  bind_groups_.erase(bindings);
}

}  // namespace pteryx::gpu::web
