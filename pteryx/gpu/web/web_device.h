// The Device over the GPUDevice of the script around the module.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pteryx/gpu/buffer_checks.h"
#include "pteryx/gpu/device.h"
#include "pteryx/gpu/shader_checks.h"
#include "pteryx/gpu/slots.h"

namespace pteryx::gpu::web {

// What a page tells of its adapter and device, as JSON: names and limits as in WebGPU's
// GPUAdapterInfo and GPUSupportedLimits, and "features", "language_features". Errors:
// kInvalidArgument.
Result<Caps> read_caps(std::string_view json);

class WebDevice final : public Device {
 public:
  // `device`: the number under which the script has its GPUDevice, which is closed with this.
  WebDevice(uint32_t device, Caps caps) : device_(device), caps_(std::move(caps)) {}
  ~WebDevice() override;

  const Caps& caps() const override { return caps_; }
  BufferId create_buffer(const BufferDesc& desc) override;
  PipelineId create_pipeline(const ShaderDesc& desc) override;
  BindGroupId create_bindings(PipelineId pipeline, std::span<const Binding> bindings,
                              std::string_view label) override;
  void destroy(BufferId buffer) override;
  void destroy(BindGroupId bindings) override;
  Result<bool> settled(BufferId buffer) override;
  Result<bool> settled(PipelineId pipeline) override;
  Result<bool> settled(BindGroupId bindings) override;
  Status write(BufferId buffer, uint64_t offset, Bytes bytes) override;
  Status write(BufferId buffer, uint64_t offset, const SourcePtr& source, uint64_t from,
               uint64_t size) override;
  Status submit(std::span<const Dispatch> dispatches, std::span<const Copy> copies) override;
  Result<Ticket> read(BufferId buffer, uint64_t offset, uint64_t size) override;
  Result<bool> done(Ticket ticket) override;
  Bytes mapped(Ticket ticket) override;
  void release(Ticket ticket) override;
  Status take_error() override;
  Counters counters() const override { return counters_; }

 private:
  // What is written through the module's memory when its source has it, a part at a time.
  struct SourceWrite {
    SourcePtr source;
    uint64_t from = 0;
    uint64_t size = 0;
    uint64_t offset = 0;
  };
  struct BufferSlot {
    uint64_t size = 0;
    BufferKind kind = BufferKind::kStorage;
    std::string label;
    Status failure;
    Ticket reading = Ticket::kNone;
    std::vector<SourceWrite> writes;

    CheckedBuffer checked() const {
      return {.label = label, .size = size, .kind = kind, .reading = reading != Ticket::kNone};
    }
  };
  enum class PipelineState : uint8_t { kCompiling, kReady, kFailed };
  struct PipelineSlot {
    PipelineState state = PipelineState::kCompiling;
    std::vector<BindingKind> bindings;
    std::string label;
    Status failure;
  };
  struct BindGroupSlot {
    Status failure;
  };
  struct ReadSlot {
    BufferId buffer = BufferId::kNone;
    bool there = false;
    bool cancelled = false;
    std::vector<std::byte> bytes;
  };

  Result<BufferSlot*> find(BufferId buffer, std::string_view what);
  Result<BufferSlot*> find_written(BufferId buffer, uint64_t offset, uint64_t size);
  void put(BufferId buffer, uint64_t offset, Bytes bytes);
  Result<bool> step_writes(BufferId buffer, BufferSlot& slot);
  Status check(const Dispatch& dispatch);
  Status check(const Copy& copy);
  Status bind(BindGroupId id, PipelineId pipeline, std::span<const Binding> bindings,
              std::string_view label);
  void cancel(Ticket ticket);

  const uint32_t device_;
  const Caps caps_;
  Slots<BufferId, BufferSlot> buffers_;
  Slots<PipelineId, PipelineSlot> pipelines_;
  std::unordered_map<Hash128, PipelineId, ShaderKeyHash> pipeline_cache_;
  Slots<BindGroupId, BindGroupSlot> bind_groups_;
  Slots<Ticket, ReadSlot> reads_;
  std::vector<std::byte> part_;  // of a source, on its way
  // Of reads that are over: a step reads as much as the one before it.
  std::vector<std::vector<std::byte>> spare_;
  Counters counters_;
};

}  // namespace pteryx::gpu::web
