// Buffers and what is written into them.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pteryx/base/checked.h"
#include "pteryx/gpu/native/native_device.h"

namespace pteryx::gpu::native {
namespace {

// Written data waits in host memory until it is submitted: not more than this much of it.
constexpr uint64_t kFlushBytes = uint64_t{64} << 20;

WGPUBufferUsage usage(BufferKind kind) {
  switch (kind) {
    case BufferKind::kStorage:
      return WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst;
    case BufferKind::kUniform: return WGPUBufferUsage_Uniform | WGPUBufferUsage_CopyDst;
    case BufferKind::kReadback: return WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst;
  }
  return WGPUBufferUsage_None;
}

}  // namespace

BufferId NativeDevice::create_buffer(const BufferDesc& desc) {
  const Lock lock(gate_);
  const uint64_t unit = desc.kind == BufferKind::kStorage ? 16 : 4;
  BufferSlot slot;
  slot.kind = desc.kind;
  slot.label = desc.label;
  slot.size =
      desc.size > caps_.max_buffer_bytes ? desc.size : align_up(std::max(desc.size, unit), unit);
  slot.failure = allocate(desc, slot);
  const BufferId id = buffers_.insert(std::move(slot));
  const BufferSlot* const made = buffers_.find(id);
  if (made == nullptr || made->handle == nullptr) return id;
  ++counters_.buffers_created;
  ++counters_.buffers_alive;
  counters_.buffer_bytes_alive += made->size;
  return id;
}

Status NativeDevice::allocate(const BufferDesc& desc, BufferSlot& slot) {
  PTERYX_TRY(errors_.take());
  if (desc.size > caps_.max_buffer_bytes) {
    return memory_error(fmt::format("buffer '{}' of {} bytes: max_buffer_bytes of the device is {}",
                                    desc.label, desc.size, caps_.max_buffer_bytes));
  }
  WGPUBufferDescriptor wanted = WGPU_BUFFER_DESCRIPTOR_INIT;
  wanted.label = view(desc.label);
  wanted.size = slot.size;
  wanted.usage = usage(desc.kind);
  DawnFakeBufferOutOfMemory refusal;
  if (std::exchange(refuse_buffer_, false)) wanted.nextInChain = &refusal.chain;
  provider().tick(instance_->handle(), device_.get());  // what was destroyed makes room
  ErrorScope errors = scope();
  BufferHandle handle = own(fn(), fn().DeviceCreateBuffer(device_.get(), &wanted));
  const auto error = errors.close();
  PTERYX_TRY(errors_.take());
  if (error && error->type == WGPUErrorType_OutOfMemory) {
    return memory_error(fmt::format("buffer '{}' of {} bytes: no memory left: {}", desc.label,
                                    slot.size, error->text));
  }
  if (error || handle == nullptr) {
    return device_error(fmt::format("buffer '{}' of {} bytes: {}", desc.label, slot.size,
                                    error ? error->text : "not created"));
  }
  slot.handle = std::move(handle);
  return ok_status();
}

void NativeDevice::destroy(BufferId buffer) {
  const Lock lock(gate_);
  BufferSlot* const slot = buffers_.find(buffer);
  PTERYX_DCHECK(slot != nullptr);
  if (slot == nullptr) return;
  if (slot->reading != Ticket::kNone) cancel(slot->reading, "its buffer was destroyed");
  forget_upload(*slot);
  if (slot->handle != nullptr) {
    --counters_.buffers_alive;
    counters_.buffer_bytes_alive -= slot->size;
  }
  buffers_.erase(buffer);
}

Result<bool> NativeDevice::settled(BufferId buffer) {
  const Lock lock(gate_);
  PTERYX_TRY(errors_.take());
  if (buffer == BufferId::kNone) return memory_error("the device has no ids left for buffers");
  BufferSlot* const slot = buffers_.find(buffer);
  if (slot == nullptr) return not_on_this_device("the buffer asked about");
  if (!slot->failure.ok()) return again(slot->failure);
  return step_writes(*slot);
}

Status NativeDevice::check_write(BufferId buffer, uint64_t offset, uint64_t size,
                                 BufferSlot*& slot) {
  PTERYX_TRY(errors_.take());
  slot = buffers_.find(buffer);
  if (slot == nullptr) return not_on_this_device("the buffer written");
  if (!slot->failure.ok()) return again(slot->failure);
  return gpu::check_write(slot->checked(), offset, size);
}

Status NativeDevice::write(BufferId buffer, uint64_t offset, Bytes bytes) {
  const Lock lock(gate_);
  BufferSlot* slot = nullptr;
  PTERYX_TRY(check_write(buffer, offset, bytes.size(), slot));
  ++counters_.writes;
  counters_.write_bytes += bytes.size();
  return put(*slot, offset, bytes);
}

Status NativeDevice::put(const BufferSlot& slot, uint64_t offset, Bytes bytes) {
  const uint64_t body = bytes.size() / 4 * 4;
  const uint64_t tail = bytes.size() - body;
  WGPUBuffer const handle = slot.handle.get();
  // What is written now comes after what is there.
  if (is_filling(slot, offset, align_up(bytes.size(), 4))) send_upload();
  for (uint64_t at = 0; at < body && errors_.empty();) {
    const uint64_t n = std::min(body - at, kFlushBytes);
    fn().QueueWriteBuffer(queue_.get(), handle, offset + at, bytes.data() + at, n);
    at += n;
    unflushed_bytes_ += n;
    if (unflushed_bytes_ >= kFlushBytes) flush_writes();
  }
  if (tail > 0) {
    std::array<std::byte, 4> last = {};
    std::memcpy(last.data(), bytes.data() + body, tail);
    fn().QueueWriteBuffer(queue_.get(), handle, offset + body, last.data(), last.size());
  }
  return errors_.take();
}

Status NativeDevice::write(BufferId buffer, uint64_t offset, const SourcePtr& source, uint64_t from,
                           uint64_t size) {
  const Lock lock(gate_);
  BufferSlot* slot = nullptr;
  PTERYX_TRY(check_write(buffer, offset, size, slot));
  ++counters_.writes;
  counters_.write_bytes += size;
  if (slot->writes.empty() && size <= kDirectBytes) {
    if (const auto bytes = source->view(from, size)) return put(*slot, offset, *bytes);
  }
  slot->writes.push_back(
      {.source = source, .from = from, .size = size, .offset = offset, .part = {}});
  Result<bool> began = step_writes(*slot);
  return began.ok() ? ok_status() : std::move(began).status();
}

Status NativeDevice::fail_writes(BufferSlot& slot, Status s) {
  slot.failure = std::move(s).during(fmt::format("writing buffer '{}'", slot.label));
  slot.writes.clear();
  return again(slot.failure);
}

// In their order, since one may overwrite another. What a source cannot give fails the buffer.
Result<bool> NativeDevice::step_writes(BufferSlot& slot) {
  while (!slot.writes.empty()) {
    SourceWrite& w = slot.writes.front();
    while (w.size > 0) {
      if (w.size > kDirectBytes) {
        uploading_ = true;
        Result<bool> sent = upload_part(slot, w);
        if (!sent.ok()) return fail_writes(slot, std::move(sent).status());
        if (!*sent) return false;
        continue;
      }
      w.part.resize(w.size);
      Result<bool> there = w.source->read(w.from, w.part);
      if (!there.ok()) return fail_writes(slot, std::move(there).status());
      if (!*there) return false;
      PTERYX_TRY(put(slot, w.offset, w.part));
      w.from += w.part.size();
      w.offset += w.part.size();
      w.size -= w.part.size();
    }
    slot.writes.erase(slot.writes.begin());
  }
  return true;
}

void NativeDevice::flush_writes() {
  if (!errors_.empty()) return;  // wgpu-native ends the process when it submits to a lost device
  fn().QueueSubmit(queue_.get(), 0, nullptr);
  unflushed_bytes_ = 0;
}

}  // namespace pteryx::gpu::native
