// Timestamps of passes. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "pteryx/base/checked.h"
#include "pteryx/gpu/native/native_device.h"

namespace pteryx::gpu::native {
namespace {

constexpr uint64_t kPassBytes = 16;  // two timestamps

}  // namespace

TimerId NativeDevice::create_timer(uint32_t passes) {
  TimerSlot slot;
  slot.passes = std::max(passes, 1U);
  if (caps_.timestamps) {
    slot.readback = create_buffer(
        {.size = slot.passes * kPassBytes, .kind = BufferKind::kReadback, .label = "timestamps"});
  }
  const Lock lock(gate_);
  slot.failure = make_timer(slot.passes, slot);
  return timers_.insert(std::move(slot));
}

Status NativeDevice::make_timer(uint32_t passes, TimerSlot& slot) {
  if (!caps_.timestamps) return unsupported("the device has no timestamps");
  const BufferSlot* const readback = buffers_.find(slot.readback);
  if (readback == nullptr) return memory_error("the device has no ids left for buffers");
  if (!readback->failure.ok()) return again(readback->failure);
  ErrorScope errors = scope();
  const uint32_t all = 2 * passes;
  for (uint32_t first = 0; first < all; first += kQueries) {
    WGPUQuerySetDescriptor desc = WGPU_QUERY_SET_DESCRIPTOR_INIT;
    desc.label = view("timestamps");
    desc.type = WGPUQueryType_Timestamp;
    desc.count = std::min(kQueries, all - first);
    slot.queries.push_back(own(fn(), fn().DeviceCreateQuerySet(device_.get(), &desc)));
  }
  WGPUBufferDescriptor desc = WGPU_BUFFER_DESCRIPTOR_INIT;
  desc.label = view("timestamps, resolved");
  desc.size = passes * kPassBytes;
  desc.usage = WGPUBufferUsage_QueryResolve | WGPUBufferUsage_CopySrc;
  slot.resolved = own(fn(), fn().DeviceCreateBuffer(device_.get(), &desc));
  const auto error = errors.close();
  PTERYX_TRY(errors_.take());
  if (!error) return {};
  return device_error(fmt::format("a timer of {} passes: {}", passes, error->text));
}

void NativeDevice::destroy(TimerId timer) {
  BufferId readback = BufferId::kNone;
  {
    const Lock lock(gate_);
    const TimerSlot* const slot = timers_.find(timer);
    PTERYX_DCHECK(slot != nullptr);
    if (slot == nullptr) return;
    readback = slot->readback;
    timers_.erase(timer);
  }
  if (readback != BufferId::kNone) destroy(readback);
}

Status NativeDevice::check_timer(const Timing& timing, size_t passes) {
  TimerSlot* const slot = timers_.find(timing.timer);
  if (slot == nullptr) return not_on_this_device("the timer of a submit");
  if (!slot->failure.ok()) return again(slot->failure);
  if (buffers_.find(slot->readback)->reading != Ticket::kNone)
    return invalid_argument("a submit is timed while the times of the one before are read");
  if (passes > slot->passes) {
    return invalid_argument(
        fmt::format("{} passes are timed with a timer for {}", passes, slot->passes));
  }
  slot->used = 0;
  return {};
}

Status NativeDevice::submit_timed(std::span<const Dispatch> dispatches,
                                  std::span<const Copy> copies, Timing& timing) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const Lock lock(gate_);
  PTERYX_TRY(errors_.take());
  for (const Dispatch& d : dispatches) PTERYX_TRY(check(d));
  for (const Copy& c : copies) PTERYX_TRY(check(c));
  PTERYX_TRY(check_timer(timing, timing.each == Timing::Each::kDispatch ? dispatches.size() : 1));
  PTERYX_TRY(encode(dispatches, copies, &timing));
  const auto whole = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start);
  timing.encode_ns = static_cast<uint64_t>(whole.count()) - timing.submit_ns;
  return {};
}

void NativeDevice::resolve(WGPUCommandEncoder encoder, const TimerSlot& timer) {
  if (timer.used == 0) return;
  const uint32_t all = 2 * timer.used;
  for (uint32_t first = 0; first < all; first += kQueries) {
    fn().CommandEncoderResolveQuerySet(encoder, timer.queries[first / kQueries].get(), 0,
                                       std::min(kQueries, all - first), timer.resolved.get(),
                                       uint64_t{first} * 8);
  }
  fn().CommandEncoderCopyBufferToBuffer(encoder, timer.resolved.get(), 0,
                                        buffers_.find(timer.readback)->handle.get(), 0,
                                        timer.used * kPassBytes);
}

Result<Ticket> NativeDevice::read_times(TimerId timer) {
  const Lock lock(gate_);
  const TimerSlot* const slot = timers_.find(timer);
  if (slot == nullptr) return not_on_this_device("the timer read");
  if (!slot->failure.ok()) return again(slot->failure);
  return begin_read(slot->readback, 0, slot->used * kPassBytes);
}

}  // namespace pteryx::gpu::native
