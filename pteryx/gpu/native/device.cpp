// Submission and reading back.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "pteryx/base/checked.h"
#include "pteryx/gpu/native/native_device.h"

namespace pteryx::gpu::native {
namespace {

constexpr uint64_t kMapAlignment = 8;

using Clock = std::chrono::steady_clock;

uint64_t nanoseconds_since(Clock::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

}  // namespace

Status NativeDevice::check(const Dispatch& d) {
  const PipelineSlot* const pipeline = pipelines_.find(d.pipeline);
  if (pipeline == nullptr) return not_on_this_device("the pipeline of a dispatch");
  if (pipeline->state == PipelineState::kFailed) return again(pipeline->failure);
  if (pipeline->state == PipelineState::kCompiling) {
    return invalid_argument(
        fmt::format("shader '{}' is dispatched before it is settled", pipeline->label));
  }
  const BindGroupSlot* const bindings = bind_groups_.find(d.bindings);
  if (bindings == nullptr) {
    return not_on_this_device(fmt::format("the bind group for shader '{}'", pipeline->label));
  }
  if (!bindings->failure.ok()) return again(bindings->failure);
  return check_grid(pipeline->label, d.grid, caps_);
}

Status NativeDevice::check(const Copy& c) {
  const BufferSlot* const src = buffers_.find(c.src);
  const BufferSlot* const dst = buffers_.find(c.dst);
  if (src == nullptr) return not_on_this_device("the source of a copy");
  if (dst == nullptr) return not_on_this_device("the target of a copy");
  if (!src->failure.ok()) return again(src->failure);
  if (!dst->failure.ok()) return again(dst->failure);
  return check_copy(c, src->checked(), dst->checked());
}

Status NativeDevice::submit(std::span<const Dispatch> dispatches, std::span<const Copy> copies) {
  const Lock lock(gate_);
  PTERYX_TRY(errors_.take());
  for (const Dispatch& d : dispatches) PTERYX_TRY(check(d));
  for (const Copy& c : copies) PTERYX_TRY(check(c));
  // A GPU that nobody waits for has nothing to do: it starts on a few dispatches while the next are
  // encoded, which takes less time than they run.
  constexpr size_t kStart = 16;
  constexpr size_t kGrowth = 3;
  for (size_t few = kStart; reads_.empty() && dispatches.size() >= 2 * few; few *= kGrowth) {
    PTERYX_TRY(encode(dispatches.first(few), {}, nullptr));
    dispatches = dispatches.subspan(few);
  }
  return encode(dispatches, copies, nullptr);
}

// Gives the number of dispatches in the pass.
uint64_t NativeDevice::encode_pass(WGPUCommandEncoder encoder, std::span<const Dispatch> dispatches,
                                   TimerSlot* timer) {
  const Functions& f = fn();
  WGPUComputePassDescriptor desc = WGPU_COMPUTE_PASS_DESCRIPTOR_INIT;
  WGPUPassTimestampWrites times = WGPU_PASS_TIMESTAMP_WRITES_INIT;
  if (timer != nullptr) {
    const uint32_t query = 2 * timer->used++;
    times.querySet = timer->queries[query / kQueries].get();
    times.beginningOfPassWriteIndex = query % kQueries;
    times.endOfPassWriteIndex = query % kQueries + 1;
    desc.timestampWrites = &times;
  }
  const PassHandle pass = own(f, f.CommandEncoderBeginComputePass(encoder, &desc));
  PipelineId pipeline = PipelineId::kNone;
  BindGroupId bindings = BindGroupId::kNone;
  uint64_t dispatched = 0;
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
  ++counters_.passes;
  return dispatched;
}

Status NativeDevice::encode(std::span<const Dispatch> dispatches, std::span<const Copy> copies,
                            Timing* timing) {
  if (uploading_) drop_uploads();
  const Functions& f = fn();
  const EncoderHandle encoder = own(f, f.DeviceCreateCommandEncoder(device_.get(), nullptr));
  PTERYX_TRY(errors_.take());
  TimerSlot* const timer = timing == nullptr ? nullptr : timers_.find(timing->timer);
  uint64_t dispatched = 0;
  if (timing != nullptr && timing->each == Timing::Each::kDispatch) {
    for (const Dispatch& d : dispatches) {
      if (!is_empty(d.grid)) dispatched += encode_pass(encoder.get(), {&d, 1}, timer);
    }
  } else if (std::ranges::any_of(dispatches, [](const Dispatch& d) { return !is_empty(d.grid); })) {
    dispatched = encode_pass(encoder.get(), dispatches, timer);
  }
  if (timer != nullptr) resolve(encoder.get(), *timer);
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
  const auto encoded = timing == nullptr ? Clock::time_point() : Clock::now();
  f.QueueSubmit(queue_.get(), 1, &buffer);
  if (timing != nullptr) timing->submit_ns = nanoseconds_since(encoded);
  unflushed_bytes_ = 0;
  ++counters_.submits;
  counters_.dispatches += dispatched;
  return errors_.take();
}

Result<Ticket> NativeDevice::read(BufferId buffer, uint64_t offset, uint64_t size) {
  const Lock lock(gate_);
  return begin_read(buffer, offset, size);
}

Result<Ticket> NativeDevice::begin_read(BufferId buffer, uint64_t offset, uint64_t size) {
  PTERYX_TRY(errors_.take());
  BufferSlot* const slot = buffers_.find(buffer);
  if (slot == nullptr) return not_on_this_device("the buffer read");
  if (!slot->failure.ok()) return again(slot->failure);
  PTERYX_TRY(check_read(slot->checked(), offset, size));
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
  if (read == nullptr) return not_on_this_device("the read asked about");
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
  now.blobs_found = kept_ == nullptr ? 0 : kept_->found();
  now.blobs_kept = kept_ == nullptr ? 0 : kept_->kept();
  return now;
}

}  // namespace pteryx::gpu::native
