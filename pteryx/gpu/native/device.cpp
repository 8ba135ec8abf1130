// Buffers, submission and reading back.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "pteryx/base/checked.h"
#include "pteryx/gpu/native/native_device.h"

namespace pteryx::gpu::native {
namespace {

// Written data waits in host memory until it is submitted: not more than this much of it.
constexpr uint64_t kFlushBytes = uint64_t{64} << 20;
constexpr uint64_t kMapAlignment = 8;
constexpr uint64_t kSourcePart = uint64_t{4} << 20;  // of a source, in memory at once

WGPUBufferUsage usage(BufferKind kind) {
  switch (kind) {
    case BufferKind::kStorage:
      return WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst;
    case BufferKind::kUniform: return WGPUBufferUsage_Uniform | WGPUBufferUsage_CopyDst;
    case BufferKind::kReadback: return WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst;
  }
  return WGPUBufferUsage_None;
}

bool is_empty(const Grid& grid) { return grid.x == 0 || grid.y == 0 || grid.z == 0; }

Status unknown(std::string_view what) {
  return invalid_argument(fmt::format("{} is not on this device", what));
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
  if (slot == nullptr) return unknown("the buffer asked about");
  if (!slot->failure.ok()) return again(slot->failure);
  return step_writes(*slot);
}

Status NativeDevice::check_write(BufferId buffer, uint64_t offset, uint64_t size,
                                 BufferSlot*& slot) {
  PTERYX_TRY(errors_.take());
  slot = buffers_.find(buffer);
  if (slot == nullptr) return unknown("the buffer written");
  if (!slot->failure.ok()) return again(slot->failure);
  if (offset % 4 != 0 || !in_range(offset, align_up(size, 4), slot->size)) {
    return invalid_argument(fmt::format("write of {} bytes at {} does not fit buffer '{}' of {}",
                                        size, offset, slot->label, slot->size));
  }
  if (slot->reading != Ticket::kNone) {
    return invalid_argument(fmt::format("write to buffer '{}' while it is read", slot->label));
  }
  return ok_status();
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
  if (slot->writes.empty()) {
    if (const auto bytes = source->view(from, size)) return put(*slot, offset, *bytes);
  }
  slot->writes.push_back(
      {.source = source, .from = from, .size = size, .offset = offset, .part = {}});
  Result<bool> began = step_writes(*slot);
  return began.ok() ? ok_status() : std::move(began).status();
}

// In their order, since one may overwrite another. What a source cannot give fails the buffer.
Result<bool> NativeDevice::step_writes(BufferSlot& slot) {
  while (!slot.writes.empty()) {
    SourceWrite& w = slot.writes.front();
    while (w.size > 0) {
      w.part.resize(std::min(w.size, kSourcePart));
      Result<bool> there = w.source->read(w.from, w.part);
      if (!there.ok()) {
        slot.failure =
            std::move(there).status().during(fmt::format("writing buffer '{}'", slot.label));
        slot.writes.clear();
        return again(slot.failure);
      }
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

Status NativeDevice::check(const Dispatch& d) {
  const PipelineSlot* const pipeline = pipelines_.find(d.pipeline);
  if (pipeline == nullptr) return unknown("the pipeline of a dispatch");
  if (pipeline->state == PipelineState::kFailed) return again(pipeline->failure);
  if (pipeline->state == PipelineState::kCompiling) {
    return invalid_argument(
        fmt::format("shader '{}' is dispatched before it is settled", pipeline->label));
  }
  const BindGroupSlot* const bindings = bind_groups_.find(d.bindings);
  if (bindings == nullptr) {
    return unknown(fmt::format("the bind group for shader '{}'", pipeline->label));
  }
  if (!bindings->failure.ok()) return again(bindings->failure);
  if (std::max({d.grid.x, d.grid.y, d.grid.z}) > caps_.max_workgroups_per_dim) {
    return invalid_argument(fmt::format("shader '{}': grid {}x{}x{} exceeds {} in a dimension",
                                        pipeline->label, d.grid.x, d.grid.y, d.grid.z,
                                        caps_.max_workgroups_per_dim));
  }
  return ok_status();
}

Status NativeDevice::check(const Copy& c) {
  const BufferSlot* const src = buffers_.find(c.src);
  const BufferSlot* const dst = buffers_.find(c.dst);
  if (src == nullptr) return unknown("the source of a copy");
  if (dst == nullptr) return unknown("the target of a copy");
  if (!src->failure.ok()) return again(src->failure);
  if (!dst->failure.ok()) return again(dst->failure);
  const bool aligned = c.src_offset % 4 == 0 && c.dst_offset % 4 == 0 && c.size % 4 == 0;
  if (!aligned || !in_range(c.src_offset, c.size, src->size) ||
      !in_range(c.dst_offset, c.size, dst->size)) {
    return invalid_argument(fmt::format(
        "copy of {} bytes from {} of '{}' ({} bytes) to {} of '{}' ({} bytes): out of "
        "range or not a multiple of 4",
        c.size, c.src_offset, src->label, src->size, c.dst_offset, dst->label, dst->size));
  }
  if (src->kind != BufferKind::kStorage || c.src == c.dst) {
    return invalid_argument(
        fmt::format("copy from '{}' to '{}': the source must be another buffer, of kind storage",
                    src->label, dst->label));
  }
  if (dst->reading != Ticket::kNone) {
    return invalid_argument(fmt::format("copy to buffer '{}' while it is read", dst->label));
  }
  return ok_status();
}

Status NativeDevice::submit(std::span<const Dispatch> dispatches, std::span<const Copy> copies) {
  const Lock lock(gate_);
  PTERYX_TRY(errors_.take());
  for (const Dispatch& d : dispatches) PTERYX_TRY(check(d));
  for (const Copy& c : copies) PTERYX_TRY(check(c));
  return encode(dispatches, copies);
}

Status NativeDevice::encode(std::span<const Dispatch> dispatches, std::span<const Copy> copies) {
  const Functions& f = fn();
  const EncoderHandle encoder = own(f, f.DeviceCreateCommandEncoder(device_.get(), nullptr));
  PTERYX_TRY(errors_.take());
  uint64_t dispatched = 0;
  if (std::ranges::any_of(dispatches, [](const Dispatch& d) { return !is_empty(d.grid); })) {
    const PassHandle pass = own(f, f.CommandEncoderBeginComputePass(encoder.get(), nullptr));
    PipelineId pipeline = PipelineId::kNone;
    BindGroupId bindings = BindGroupId::kNone;
    for (const Dispatch& d : dispatches) {
      if (is_empty(d.grid)) continue;
      if (d.pipeline != pipeline) {
        f.ComputePassEncoderSetPipeline(pass.get(), pipelines_.find(d.pipeline)->handle.get());
        pipeline = d.pipeline;
      }
      if (d.bindings != bindings) {
        WGPUBindGroup const group = bind_groups_.find(d.bindings)->handle.get();
        f.ComputePassEncoderSetBindGroup(pass.get(), 0, group, 0, nullptr);
        bindings = d.bindings;
      }
      f.ComputePassEncoderDispatchWorkgroups(pass.get(), d.grid.x, d.grid.y, d.grid.z);
      ++dispatched;
    }
    f.ComputePassEncoderEnd(pass.get());
  }
  for (const Copy& c : copies) {
    if (c.size == 0) continue;
    f.CommandEncoderCopyBufferToBuffer(encoder.get(), buffers_.find(c.src)->handle.get(),
                                       c.src_offset, buffers_.find(c.dst)->handle.get(),
                                       c.dst_offset, c.size);
  }
  const CommandsHandle commands = own(f, f.CommandEncoderFinish(encoder.get(), nullptr));
  // wgpu-native ends the process when commands with an error are submitted.
  PTERYX_TRY(errors_.take());
  WGPUCommandBuffer const buffer = commands.get();
  f.QueueSubmit(queue_.get(), 1, &buffer);
  unflushed_bytes_ = 0;
  ++counters_.submits;
  counters_.passes += dispatched > 0 ? 1 : 0;
  counters_.dispatches += dispatched;
  return errors_.take();
}

Result<Ticket> NativeDevice::read(BufferId buffer, uint64_t offset, uint64_t size) {
  const Lock lock(gate_);
  PTERYX_TRY(errors_.take());
  BufferSlot* const slot = buffers_.find(buffer);
  if (slot == nullptr) return unknown("the buffer read");
  if (!slot->failure.ok()) return again(slot->failure);
  if (slot->kind != BufferKind::kReadback || slot->reading != Ticket::kNone) {
    return invalid_argument(fmt::format("buffer '{}' {}", slot->label,
                                        slot->kind != BufferKind::kReadback
                                            ? "is not of kind readback, so it cannot be read"
                                            : "is being read already"));
  }
  if (!in_range(offset, size, slot->size)) {
    return invalid_argument(fmt::format("read of {} bytes at {} does not fit buffer '{}' of {}",
                                        size, offset, slot->label, slot->size));
  }
  const Ticket ticket = reads_.insert({.buffer = buffer, .offset = offset, .size = size});
  if (ticket == Ticket::kNone) return memory_error("the device has no ids left for reads");
  ReadSlot& read = *reads_.find(ticket);
  ++counters_.reads;
  counters_.read_bytes += size;
  if (size == 0) {
    read.state = ReadState::kMapped;
    return ticket;
  }
  slot->reading = ticket;
  WGPUBufferMapCallbackInfo info = WGPU_BUFFER_MAP_CALLBACK_INFO_INIT;
  info.mode = provider().callback_mode();
  info.callback = [](WGPUMapAsyncStatus status, WGPUStringView message, void* user, void*) {
    auto& r = *static_cast<ReadSlot*>(user);
    r.state = status == WGPUMapAsyncStatus_Success ? ReadState::kMapped : ReadState::kFailed;
    if (r.state == ReadState::kFailed) r.error = text(message);
  };
  info.userdata1 = &read;
  const uint64_t from = offset / kMapAlignment * kMapAlignment;
  const uint64_t to = align_up(offset + size, 4);
  read.future = fn().BufferMapAsync(slot->handle.get(), WGPUMapMode_Read, from, to - from, info);
  reading_.push_back(ticket);
  return ticket;
}

bool NativeDevice::step(ReadSlot& read, uint64_t timeout_ns) {
  if (read.state == ReadState::kPending) poll(read.future, timeout_ns);
  return read.state != ReadState::kPending || errors_.lost();
}

Status NativeDevice::failure(const ReadSlot& read) {
  PTERYX_TRY(errors_.take());
  if (read.state == ReadState::kMapped) return ok_status();
  const BufferSlot* const buffer = buffers_.find(read.buffer);
  return device_error(
      fmt::format("read of buffer '{}': {}", buffer == nullptr ? "" : buffer->label, read.error));
}

Result<bool> NativeDevice::done(Ticket ticket) {
  const Lock lock(gate_);
  ReadSlot* const read = reads_.find(ticket);
  if (read == nullptr) return unknown("the read asked about");
  if (!step(*read, 0)) return false;
  PTERYX_TRY(failure(*read));
  return true;
}

Bytes NativeDevice::mapped(Ticket ticket) {
  const Lock lock(gate_);
  ReadSlot* const read = reads_.find(ticket);
  PTERYX_DCHECK(read != nullptr);
  if (read == nullptr || read->state != ReadState::kMapped || read->size == 0) return {};
  const BufferSlot* const buffer = buffers_.find(read->buffer);
  if (buffer == nullptr || errors_.lost()) return {};
  const uint64_t from = read->offset / kMapAlignment * kMapAlignment;
  const uint64_t to = align_up(read->offset + read->size, 4);
  const void* const data = fn().BufferGetConstMappedRange(buffer->handle.get(), from, to - from);
  if (data == nullptr) return {};
  return Bytes(static_cast<const std::byte*>(data), to - from)
      .subspan(read->offset - from, read->size);
}

void NativeDevice::release(Ticket ticket) {
  const Lock lock(gate_);
  ReadSlot* const read = reads_.find(ticket);
  PTERYX_DCHECK(read != nullptr);
  if (read == nullptr) return;
  cancel(ticket, "released");
  reads_.erase(ticket);
  std::erase(reading_, ticket);
}

void NativeDevice::cancel(Ticket ticket, std::string_view why) {
  ReadSlot& read = *reads_.find(ticket);
  BufferSlot* const buffer = buffers_.find(read.buffer);
  if (buffer == nullptr || buffer->reading != ticket) return;
  buffer->reading = Ticket::kNone;
  const bool pending = read.state == ReadState::kPending;
  if (read.state != ReadState::kFailed) fn().BufferUnmap(buffer->handle.get());
  if (pending) poll(read.future, UINT64_MAX);  // answers at once, now that it is unmapped
  read.state = ReadState::kFailed;
  read.error = why;
}

Status NativeDevice::take_error() {
  const Lock lock(gate_);
  return errors_.take();
}

Counters NativeDevice::counters() const {
  const Lock lock(gate_);
  Counters now = counters_;
  for (const PipelineId id : compiling_) {
    const PipelineSlot* const slot = pipelines_.find(id);
    now.pipelines_compiling += slot != nullptr && slot->state == PipelineState::kCompiling ? 1 : 0;
  }
  return now;
}

}  // namespace pteryx::gpu::native
