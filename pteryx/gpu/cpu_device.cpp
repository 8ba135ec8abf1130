// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/cpu_device.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "pteryx/base/checked.h"
#include "pteryx/gpu/buffer_checks.h"
#include "pteryx/gpu/slots.h"

namespace pteryx::gpu {
namespace {

// No mutex: the web build has none. What it guards takes moments, and few threads meet here.
class SpinLock {
 public:
  explicit SpinLock(std::atomic_flag& flag) : flag_(flag) {
    while (flag_.test_and_set(std::memory_order_acquire)) {
    }
  }
  ~SpinLock() { flag_.clear(std::memory_order_release); }
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

 private:
  std::atomic_flag& flag_;
};

// Limits are those of host memory.
Caps make_caps() {
  Caps caps;
  caps.cpu = true;
  caps.bounds_checks = false;
  constexpr uint64_t kMost = std::numeric_limits<std::ptrdiff_t>::max() / 2;
  caps.max_buffer_bytes = caps.max_binding_bytes = kMost;
  caps.sizes = {.processors = 1, .invocations = 1};
  caps.adapter = cpu_name();
  return caps;
}

Status no_shaders() { return unsupported("the device is the CPU, which runs no shaders"); }
class CpuDevice final : public Device {
 public:
  const Caps& caps() const override { return caps_; }

  BufferId create_buffer(const BufferDesc& desc) override {
    const SpinLock lock(flag_);
    const uint64_t unit = desc.kind == BufferKind::kStorage ? 16 : 4;
    Buffer b{.kind = desc.kind, .label = std::string(desc.label)};
    if (desc.size <= caps_.max_buffer_bytes) {
      b.size = align_up(std::max(desc.size, unit), unit);
      b.bytes.reset(new (std::nothrow) std::byte[static_cast<size_t>(b.size)]());
    }
    if (b.bytes == nullptr) {
      b.failure = memory_error(
          fmt::format("buffer '{}' of {} bytes: no memory left", desc.label, desc.size));
    } else {
      ++counters_.buffers_created;
      ++counters_.buffers_alive;
      counters_.buffer_bytes_alive += b.size;
    }
    return buffers_.insert(std::move(b));
  }
  PipelineId create_pipeline(const ShaderDesc& /*desc*/) override { return PipelineId::kNone; }
  BindGroupId create_bindings(PipelineId /*pipeline*/, std::span<const Binding> /*bindings*/,
                              std::string_view /*label*/) override {
    return BindGroupId::kNone;
  }
  void destroy(BufferId buffer) override {
    const SpinLock lock(flag_);
    const Buffer* const b = buffers_.find(buffer);
    PTERYX_DCHECK(b != nullptr);
    if (b == nullptr) return;
    if (b->bytes != nullptr) {
      --counters_.buffers_alive;
      counters_.buffer_bytes_alive -= b->size;
    }
    buffers_.erase(buffer);
  }
  void destroy(BindGroupId /*bindings*/) override {}

  Result<bool> settled(BufferId buffer) override {
    const SpinLock lock(flag_);
    PTERYX_ASSIGN(Buffer* const b, find(buffer, "the buffer asked about"));
    return step_writes(*b);
  }
  Result<bool> settled(PipelineId /*pipeline*/) override { return no_shaders(); }
  Result<bool> settled(BindGroupId /*bindings*/) override { return no_shaders(); }

  Status write(BufferId buffer, uint64_t offset, Bytes bytes) override {
    const SpinLock lock(flag_);
    PTERYX_ASSIGN(Buffer* const b, find_written(buffer, offset, bytes.size()));
    if (!bytes.empty()) std::memcpy(b->at(offset), bytes.data(), bytes.size());
    clear_tail(*b, offset + bytes.size());
    return {};
  }
  Status write(BufferId buffer, uint64_t offset, const SourcePtr& source, uint64_t from,
               uint64_t size) override {
    const SpinLock lock(flag_);
    PTERYX_ASSIGN(Buffer* const b, find_written(buffer, offset, size));
    b->writes.push_back({.source = source, .from = from, .size = size, .offset = offset});
    Result<bool> begun = step_writes(*b);
    return begun.ok() ? ok_status() : std::move(begun).status();
  }

  Status submit(std::span<const Dispatch> dispatches, std::span<const Copy> copies) override {
    if (!dispatches.empty()) return no_shaders();
    const SpinLock lock(flag_);
    for (const Copy& c : copies) PTERYX_TRY(check(c));
    ++counters_.submits;
    for (const Copy& c : copies) {
      std::memcpy(buffers_.find(c.dst)->at(c.dst_offset), buffers_.find(c.src)->at(c.src_offset),
                  static_cast<size_t>(c.size));
    }
    return {};
  }

  Result<Ticket> read(BufferId buffer, uint64_t offset, uint64_t size) override {
    const SpinLock lock(flag_);
    PTERYX_ASSIGN(Buffer* const b, find(buffer, "the buffer read"));
    PTERYX_TRY(check_read(b->checked(), offset, size));
    const Ticket ticket = reads_.insert({.buffer = buffer, .offset = offset, .size = size});
    if (ticket == Ticket::kNone) return memory_error("the device has no ids left for reads");
    b->reading = true;
    ++counters_.reads;
    counters_.read_bytes += size;
    return ticket;
  }
  Result<bool> done(Ticket ticket) override {
    const SpinLock lock(flag_);
    const Read* const r = reads_.find(ticket);
    if (r == nullptr) return not_on_this_device("the read asked about");
    if (buffers_.find(r->buffer) == nullptr)
      return invalid_argument("a read was cancelled: its buffer was destroyed");
    return true;
  }
  Bytes mapped(Ticket ticket) override {
    const SpinLock lock(flag_);
    const Read* const r = reads_.find(ticket);
    const Buffer* const b = r == nullptr ? nullptr : buffers_.find(r->buffer);
    if (b == nullptr) return {};
    return {b->at(r->offset), static_cast<size_t>(r->size)};
  }
  void release(Ticket ticket) override {
    const SpinLock lock(flag_);
    const Read* const r = reads_.find(ticket);
    if (r == nullptr) return;
    if (Buffer* const b = buffers_.find(r->buffer)) b->reading = false;
    reads_.erase(ticket);
  }

  Status take_error() override { return {}; }
  Counters counters() const override {
    const SpinLock lock(flag_);
    return counters_;
  }

 private:
  struct SourceWrite {
    SourcePtr source;
    uint64_t from = 0;
    uint64_t size = 0;
    uint64_t offset = 0;
  };
  struct Buffer {
    BufferKind kind = BufferKind::kStorage;
    std::string label = {};
    uint64_t size = 0;
    std::unique_ptr<std::byte[]> bytes = nullptr;  // NOLINT(modernize-avoid-c-arrays)
    bool reading = false;
    std::vector<SourceWrite> writes = {};  // that wait for their bytes, in their order
    Status failure = {};

    std::byte* at(uint64_t offset) const { return bytes.get() + offset; }
    CheckedBuffer checked() const {
      return {.label = label, .size = size, .kind = kind, .reading = reading};
    }
  };
  struct Read {
    BufferId buffer = BufferId::kNone;
    uint64_t offset = 0;
    uint64_t size = 0;
  };

  Result<Buffer*> find(BufferId id, std::string_view what) {
    if (id == BufferId::kNone) return memory_error("the device has no ids left for buffers");
    Buffer* const b = buffers_.find(id);
    if (b == nullptr) return not_on_this_device(what);
    if (!b->failure.ok()) return again(b->failure);
    return b;
  }
  Result<Buffer*> find_written(BufferId id, uint64_t offset, uint64_t size) {
    PTERYX_ASSIGN(Buffer* const b, find(id, "the buffer written"));
    PTERYX_TRY(check_write(b->checked(), offset, size));
    ++counters_.writes;
    counters_.write_bytes += size;
    return b;
  }
  // Buffers end at a multiple of 4, so that there is room for it.
  static void clear_tail(const Buffer& b, uint64_t end) {
    std::memset(b.at(end), 0, static_cast<size_t>(align_up(end, 4) - end));
  }
  Status check(const Copy& c) {
    PTERYX_ASSIGN(const Buffer* const src, find(c.src, "the source of a copy"));
    PTERYX_ASSIGN(const Buffer* const dst, find(c.dst, "the target of a copy"));
    return check_copy(c, src->checked(), dst->checked());
  }
  Result<bool> step_writes(Buffer& b) {
    while (!b.writes.empty()) {
      const SourceWrite& w = b.writes.front();
      Result<bool> there = w.source->read(w.from, {b.at(w.offset), static_cast<size_t>(w.size)});
      if (!there.ok()) {
        b.failure = std::move(there).status().during(fmt::format("writing buffer '{}'", b.label));
        b.writes.clear();
        return again(b.failure);
      }
      if (!*there) return false;
      clear_tail(b, w.offset + w.size);
      b.writes.erase(b.writes.begin());
    }
    return true;
  }

  const Caps caps_ = make_caps();
  mutable std::atomic_flag flag_;
  Slots<BufferId, Buffer> buffers_;
  Slots<Ticket, Read> reads_;
  Counters counters_;
};

}  // namespace

std::shared_ptr<Device> cpu_device() { return std::make_shared<CpuDevice>(); }

}  // namespace pteryx::gpu
