// A device that finishes everything late and in another order, for tests of those who must not
// wait.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string_view>
#include <utility>

#include "pteryx/gpu/device.h"

namespace pteryx::gpu {

// Work is done by a real device. Each object and each read is asked about a few times, how many is
// drawn at random, before it is there; whoever uses one that he did not hear of as settled gets an
// error, as a device that makes things late would give him. It counts who waits: nobody should.
class LateDevice final : public Device {
 public:
  LateDevice(std::shared_ptr<Device> real, uint32_t seed) : real_(std::move(real)), random_(seed) {}

  // The next read fails, as on a device that is lost.
  void fail_next_read() { fail_read_ = true; }
  // No read is done until they are let go; then those that were begun are, as soon as the GPU is.
  void hold_reads() { held_ = true; }
  void let_reads_go() {
    held_ = false;
    tickets_.clear();
  }
  uint64_t idled() const { return idled_; }
  uint64_t postponed() const { return postponed_; }  // times that it said "not yet"

  const Caps& caps() const override { return real_->caps(); }
  BufferId create_buffer(const BufferDesc& desc) override {
    return begun(buffers_, real_->create_buffer(desc));
  }
  PipelineId create_pipeline(const ShaderDesc& desc) override {
    return begun(pipelines_, real_->create_pipeline(desc));
  }
  BindGroupId create_bindings(PipelineId pipeline, std::span<const Binding> bindings,
                              std::string_view label) override {
    return begun(bindings_, real_->create_bindings(pipeline, bindings, label));
  }
  void destroy(BufferId id) override {
    buffers_.erase(id);
    real_->destroy(id);
  }
  void destroy(BindGroupId id) override {
    bindings_.erase(id);
    real_->destroy(id);
  }
  Result<bool> settled(BufferId id) override { return settled(buffers_, id); }
  Result<bool> settled(PipelineId id) override { return settled(pipelines_, id); }
  Result<bool> settled(BindGroupId id) override { return settled(bindings_, id); }
  Status write(BufferId buffer, uint64_t offset, Bytes bytes) override {
    return real_->write(buffer, offset, bytes);
  }
  Status write(BufferId buffer, uint64_t offset, const SourcePtr& source, uint64_t from,
               uint64_t size) override {
    begun(buffers_, buffer);
    return real_->write(buffer, offset, source, from, size);
  }
  Status submit(std::span<const Dispatch> dispatches, std::span<const Copy> copies) override {
    PTERYX_TRY(check(dispatches, copies));
    return real_->submit(dispatches, copies);
  }
  TimerId create_timer(uint32_t passes) override { return real_->create_timer(passes); }
  void destroy(TimerId timer) override { real_->destroy(timer); }
  Status submit_timed(std::span<const Dispatch> dispatches, std::span<const Copy> copies,
                      Timing& timing) override {
    PTERYX_TRY(check(dispatches, copies));
    return real_->submit_timed(dispatches, copies, timing);
  }
  Result<Ticket> read_times(TimerId timer) override {
    PTERYX_ASSIGN(const Ticket ticket, real_->read_times(timer));
    return begun(tickets_, ticket);
  }
  Result<Ticket> read(BufferId buffer, uint64_t offset, uint64_t size) override {
    if (buffers_.contains(buffer)) return unsettled("buffer that is read");
    if (std::exchange(fail_read_, false)) return device_error("the read failed");
    PTERYX_ASSIGN(const Ticket ticket, real_->read(buffer, offset, size));
    return begun(tickets_, ticket);
  }
  Result<bool> done(Ticket ticket) override {
    if (held_ || is_late(tickets_, ticket)) return false;
    return real_->done(ticket);
  }
  Bytes mapped(Ticket ticket) override { return real_->mapped(ticket); }
  void release(Ticket ticket) override {
    tickets_.erase(ticket);
    real_->release(ticket);
  }
  Status take_error() override { return real_->take_error(); }
  Counters counters() const override { return real_->counters(); }
  void idle(uint64_t most_ns) override {
    ++idled_;
    real_->idle(most_ns);
  }

 private:
  Status check(std::span<const Dispatch> dispatches, std::span<const Copy> copies) const {
    for (const Dispatch& d : dispatches) {
      if (pipelines_.contains(d.pipeline)) return unsettled("pipeline of a dispatch");
      if (bindings_.contains(d.bindings)) return unsettled("bind group of a dispatch");
    }
    for (const Copy& c : copies) {
      if (buffers_.contains(c.src)) return unsettled("copied buffer");
    }
    return {};
  }
  template <typename Id>
  using Waiting = std::map<Id, uint32_t>;  // how often it is asked about before it is there

  template <typename Id>
  Id begun(Waiting<Id>& waiting, Id id) {
    waiting[id] = static_cast<uint32_t>(random_() % 7);
    return id;
  }
  template <typename Id>
  bool is_late(Waiting<Id>& waiting, Id id) {
    const auto it = waiting.find(id);
    if (it == waiting.end()) return false;
    if (it->second == 0) {
      waiting.erase(it);
      return false;
    }
    --it->second;
    ++postponed_;
    return true;
  }
  template <typename Id>
  Result<bool> settled(Waiting<Id>& waiting, Id id) {
    const auto it = waiting.find(id);
    const uint32_t left = it == waiting.end() ? 0 : it->second;
    if (is_late(waiting, id)) return false;
    auto there = real_->settled(id);
    if (there.ok() && !*there) waiting[id] = left;
    return there;
  }
  static Status unsettled(std::string_view what) {
    return invalid_argument("used before it is settled: the " + std::string(what));
  }

  std::shared_ptr<Device> real_;
  std::mt19937 random_;
  Waiting<BufferId> buffers_;
  Waiting<PipelineId> pipelines_;
  Waiting<BindGroupId> bindings_;
  Waiting<Ticket> tickets_;
  bool fail_read_ = false;
  bool held_ = false;
  uint64_t idled_ = 0;
  uint64_t postponed_ = 0;
};

}  // namespace pteryx::gpu
