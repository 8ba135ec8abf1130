// The Device over webgpu.h. One lock per device, held around every call into the library and never
// while waiting for the GPU, so callbacks of the library (other than errors, see ErrorLog) run
// under it too.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pteryx/gpu/buffer_checks.h"
#include "pteryx/gpu/device.h"
#include "pteryx/gpu/native/blob_cache.h"
#include "pteryx/gpu/native/errors.h"
#include "pteryx/gpu/native/gate.h"
#include "pteryx/gpu/native/instance.h"
#include "pteryx/gpu/native/upload.h"
#include "pteryx/gpu/shader_checks.h"
#include "pteryx/gpu/slots.h"

namespace pteryx::gpu::native {

class NativeDevice final : public Device {
 public:
  // caps are the adapter's, already masked: a masked feature is not asked for. Errors: kDevice.
  static Result<std::shared_ptr<NativeDevice>> open(std::shared_ptr<const Instance> instance,
                                                    WGPUAdapter adapter, Caps caps, Checks checks,
                                                    const PipelineCacheOptions& kept = {});
  ~NativeDevice() override;

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
  TimerId create_timer(uint32_t passes) override;
  void destroy(TimerId timer) override;
  Status submit_timed(std::span<const Dispatch> dispatches, std::span<const Copy> copies,
                      Timing& timing) override;
  Result<Ticket> read_times(TimerId timer) override;
  Result<Ticket> read(BufferId buffer, uint64_t offset, uint64_t size) override;
  Result<bool> done(Ticket ticket) override;
  Bytes mapped(Ticket ticket) override;
  void release(Ticket ticket) override;
  Status take_error() override;
  Counters counters() const override;
  void idle(uint64_t most_ns) override;

  const Provider& provider() const { return instance_->provider(); }
  // Ends the probing of a fresh device.
  void complete_caps(Caps caps);

  // For tests: makes the library drop the device, as a driver reset would.
  void drop_device();
  // For tests, Dawn only: the next buffer meets an out-of-memory error.
  void refuse_next_buffer() { refuse_buffer_ = true; }

 private:
  // What is written when its source has it, a part at a time.
  struct SourceWrite {
    SourcePtr source;
    uint64_t from = 0;
    uint64_t size = 0;
    uint64_t offset = 0;
    std::vector<std::byte> part;
  };
  struct BufferSlot {
    BufferHandle handle;  // null: failed
    uint64_t size = 0;
    BufferKind kind = BufferKind::kStorage;
    std::string label;
    Status failure;
    Ticket reading = Ticket::kNone;  // WebGPU maps a buffer once at a time
    std::vector<SourceWrite> writes;

    CheckedBuffer checked() const {
      return {.label = label, .size = size, .kind = kind, .reading = reading != Ticket::kNone};
    }
  };
  enum class PipelineState : uint8_t { kCompiling, kReady, kFailed };
  struct PipelineSlot {
    PipelineHandle handle;
    PipelineState state = PipelineState::kCompiling;
    WGPUBindGroupLayout layout = nullptr;  // of layouts_
    std::vector<BindingKind> bindings;
    std::string label;
    Status failure;
    Hash128 key;
    WGPUFuture future = {};
    const Functions* fn = nullptr;
  };
  struct BindGroupSlot {
    BindGroupHandle handle;
    Status failure;
  };
  enum class ReadState : uint8_t { kPending, kMapped, kFailed };
  struct ReadSlot {
    ReadState state = ReadState::kPending;
    BufferId buffer = BufferId::kNone;
    uint64_t offset = 0;
    uint64_t size = 0;
    WGPUFuture future = {};
    std::string error;
  };
  struct Layout {
    LayoutHandle bind_group;
    PipelineLayoutHandle pipeline;
  };
  struct TimerSlot {
    std::vector<QuerySetHandle> queries;  // WebGPU has at most kQueries in a set
    BufferHandle resolved;
    BufferId readback = BufferId::kNone;
    uint32_t passes = 0;
    uint32_t used = 0;  // by the last submit
    Status failure;
  };
  static constexpr uint32_t kQueries = 4096;

  NativeDevice(std::shared_ptr<const Instance> instance, Caps caps, Checks checks);
  // The error of an object, for one more who uses it.
  const Functions& fn() const { return provider().fn(); }
  ErrorScope scope() const { return {provider(), instance_->handle(), device_.get()}; }
  void poll(WGPUFuture future, uint64_t timeout_ns);

  // All below with the gate locked.
  Status allocate(const BufferDesc& desc, BufferSlot& slot);
  Status check_write(BufferId buffer, uint64_t offset, uint64_t size, BufferSlot*& slot);
  Status put(const BufferSlot& slot, uint64_t offset, Bytes bytes);
  Result<bool> step_writes(BufferSlot& slot);
  static Status fail_writes(BufferSlot& slot, Status s);
  Result<UploadSlot*> free_upload();
  void send_upload();
  Result<bool> upload_part(const BufferSlot& slot, SourceWrite& w);  // false: ask again
  // With bytes for that range that are not sent yet.
  bool is_filling(const BufferSlot& slot, uint64_t offset, uint64_t size) const;
  void forget_upload(const BufferSlot& slot);
  void drop_uploads();
  void end_uploads();
  Status check(const Dispatch& dispatch);
  Status check(const Copy& copy);
  // `timing`: null for none.
  Status encode(std::span<const Dispatch> dispatches, std::span<const Copy> copies, Timing* timing);
  uint64_t encode_pass(WGPUCommandEncoder encoder, std::span<const Dispatch> dispatches,
                       TimerSlot* timer);
  void resolve(WGPUCommandEncoder encoder, const TimerSlot& timer);
  Status check_timer(const Timing& timing, size_t passes);
  Status make_timer(uint32_t passes, TimerSlot& slot);
  Result<Ticket> begin_read(BufferId buffer, uint64_t offset, uint64_t size);
  void flush_writes();
  bool step(ReadSlot& read, uint64_t timeout_ns);
  Status failure(const ReadSlot& read);
  WGPUFuture* oldest_future();
  void cancel(Ticket ticket, std::string_view why);
  Result<const Layout*> layout_for(std::span<const BindingKind> kinds);
  Status compile(const ShaderDesc& desc, PipelineSlot& slot);
  bool step(PipelineSlot& pipeline, uint64_t timeout_ns);
  Result<BindGroupHandle> bind(PipelineId pipeline, std::span<const Binding> bindings,
                               std::string_view label);
  Status check(const PipelineSlot& pipeline, size_t index, const Binding& binding,
               std::string_view label, WGPUBindGroupEntry& entry);

  // In this order: what stands lower is released first, the log after everything that may still
  // report.
  const std::shared_ptr<const Instance> instance_;
  Caps caps_;
  const Checks checks_;
  ErrorLog errors_;
  std::unique_ptr<BlobCache> kept_;  // null: nothing is kept
  mutable Gate gate_;
  DeviceHandle device_;
  QueueHandle queue_;
  std::map<std::vector<BindingKind>, Layout> layouts_;
  Slots<PipelineId, PipelineSlot> pipelines_;
  std::unordered_map<Hash128, PipelineId, ShaderKeyHash> pipeline_cache_;
  std::vector<PipelineId> compiling_;  // when last looked at
  Slots<BufferId, BufferSlot> buffers_;
  Slots<BindGroupId, BindGroupSlot> bind_groups_;
  Slots<Ticket, ReadSlot> reads_;
  Slots<TimerId, TimerSlot> timers_;
  std::vector<Ticket> reading_;                            // not released, oldest first
  std::chrono::steady_clock::time_point step_back_until_;  // another thread uses the device
  uint64_t unflushed_bytes_ = 0;
  UploadSlots uploads_;
  UploadSlot* filling_ = nullptr;
  bool uploading_ = false;  // until a submit finds none of them busy
  bool refuse_buffer_ = false;
  Counters counters_;
};

}  // namespace pteryx::gpu::native
