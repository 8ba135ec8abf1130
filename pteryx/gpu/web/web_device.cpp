// Submission and reading back. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/web/web_device.h"

#include <utility>

#include <fmt/format.h>

#include "pteryx/gpu/web/imports.h"

namespace pteryx::gpu::web {

using pteryx::web::settle;

WebDevice::~WebDevice() { pteryx_gpu_close(device_); }

Status WebDevice::take_error() {
  auto answer = settle(pteryx_gpu_error(device_));
  return answer.ok() ? ok_status() : std::move(answer).status();
}

Status WebDevice::check(const Dispatch& d) {
  const PipelineSlot* const pipeline = pipelines_.find(d.pipeline);
  if (pipeline == nullptr) return not_on_this_device("the pipeline of a dispatch");
  if (pipeline->state == PipelineState::kFailed) return again(pipeline->failure);
  if (pipeline->state == PipelineState::kCompiling) {
    return invalid_argument(shader_error(pipeline->label, "dispatched before it is settled"));
  }
  const BindGroupSlot* const bindings = bind_groups_.find(d.bindings);
  if (bindings == nullptr)
    return not_on_this_device(fmt::format("the bind group for shader '{}'", pipeline->label));
  if (!bindings->failure.ok()) return again(bindings->failure);
  return check_grid(pipeline->label, d.grid, caps_);
}

Status WebDevice::check(const Copy& c) {
  PTERYX_ASSIGN(const BufferSlot* const src, find(c.src, "the source of a copy"));
  PTERYX_ASSIGN(const BufferSlot* const dst, find(c.dst, "the target of a copy"));
  return check_copy(c, src->checked(), dst->checked());
}

Status WebDevice::submit(std::span<const Dispatch> dispatches, std::span<const Copy> copies) {
  PTERYX_TRY(take_error());
  uint64_t dispatched = 0;
  for (const Dispatch& d : dispatches) {
    PTERYX_TRY(check(d));
    dispatched += is_empty(d.grid) ? 0 : 1;
  }
  for (const Copy& c : copies) PTERYX_TRY(check(c));
  pteryx_gpu_submit(device_, dispatches.data(), dispatches.size(), copies.data(), copies.size());
  ++counters_.submits;
  counters_.passes += dispatched > 0 ? 1 : 0;
  counters_.dispatches += dispatched;
  return {};
}

Result<Ticket> WebDevice::read(BufferId buffer, uint64_t offset, uint64_t size) {
  PTERYX_TRY(take_error());
  PTERYX_ASSIGN(BufferSlot* const slot, find(buffer, "the buffer read"));
  PTERYX_TRY(check_read(slot->checked(), offset, size));
  const Ticket ticket = reads_.insert({.buffer = buffer});
  if (ticket == Ticket::kNone) return memory_error("the device has no ids left for reads");
  ReadSlot& read = *reads_.find(ticket);
  if (!spare_.empty()) {
    read.bytes = std::move(spare_.back());
    spare_.pop_back();
  }
  read.bytes.resize(size);
  ++counters_.reads;
  counters_.read_bytes += size;
  if (size == 0) {
    read.there = true;
    return ticket;
  }
  slot->reading = ticket;
  pteryx_gpu_read(device_, ticket, buffer, static_cast<double>(offset), static_cast<double>(size));
  return ticket;
}

Result<bool> WebDevice::done(Ticket ticket) {
  ReadSlot* const read = reads_.find(ticket);
  if (read == nullptr) return not_on_this_device("the read asked about");
  if (read->cancelled) return invalid_argument("a read was cancelled: its buffer was destroyed");
  if (read->there) return true;
  PTERYX_TRY(take_error());
  PTERYX_ASSIGN(read->there, settle(pteryx_gpu_read_answer(device_, ticket)));
  if (read->there) pteryx_gpu_read_copy(device_, ticket, read->bytes.data());
  return read->there;
}

Bytes WebDevice::mapped(Ticket ticket) {
  const ReadSlot* const read = reads_.find(ticket);
  if (read == nullptr || !read->there || read->cancelled) return {};
  return read->bytes;
}

void WebDevice::cancel(Ticket ticket) {
  ReadSlot& read = *reads_.find(ticket);
  BufferSlot* const buffer = buffers_.find(read.buffer);
  if (buffer == nullptr || buffer->reading != ticket) return;
  buffer->reading = Ticket::kNone;
  read.cancelled = true;
  pteryx_gpu_read_release(device_, ticket);
}

void WebDevice::release(Ticket ticket) {
  ReadSlot* const read = reads_.find(ticket);
  if (read == nullptr) return;
  cancel(ticket);
  constexpr size_t kKept = 8;
  if (spare_.size() < kKept) spare_.push_back(std::move(read->bytes));
  reads_.erase(ticket);
}

}  // namespace pteryx::gpu::web
