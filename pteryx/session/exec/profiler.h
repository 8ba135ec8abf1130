// What stands behind Profile: takes note of phases and timed submits.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pteryx/gpu/device.h"
#include "pteryx/profile.h"

namespace pteryx::exec {

class Profiler {
 public:
  using Phase = Profile::Phase;
  using GpuSpan = Profile::GpuSpan;

  Profiler(std::shared_ptr<gpu::Device> device, Profile::Detail detail)
      : device_(std::move(device)), detail_(detail) {}
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  void add(Phase phase, double begin_us, double end_us) {
    host_.push_back({phase, begin_us, end_us});
  }
  double now_us() const {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start_)
        .count();
  }
  // Waiting begins once, and ends where something is there.
  void wait() {
    if (!waiting_since_) waiting_since_ = now_us();
  }
  void waited();

  // What a dispatch of a submit is; `flops` are those of its node, which its longest dispatch gets
  // where none says its own.
  struct Item {
    std::string_view kernel;
    std::string_view method;
    std::string_view op;
    uint32_t node = 0;
    double bytes = 0;
    double flops = 0;
    double node_flops = 0;
  };
  std::vector<Item>& items() { return items_; }  // of the next submit; room that is kept
  Status submit(std::span<const gpu::Dispatch> dispatches, std::span<const gpu::Copy> copies);

  Result<bool> advance();
  std::span<const Profile::HostSpan> host() const { return host_; }
  std::span<const GpuSpan> gpu() const { return gpu_; }
  bool has_timestamps() const { return device_->caps().timestamps; }
  void clear();

 private:
  struct Timer {
    gpu::TimerId id = gpu::TimerId::kNone;
    uint32_t passes = 0;
    bool busy = false;
  };
  struct Pending {
    size_t timer = 0;
    gpu::Ticket ticket = gpu::Ticket::kNone;
    double submitted_us = 0;
    std::vector<GpuSpan> spans;
    std::vector<double> node_flops;
  };
  size_t free_timer(uint32_t passes);
  std::string_view keep(std::string_view text);
  void take(Pending& p, Bytes times, double done_us);

  std::shared_ptr<gpu::Device> device_;
  Profile::Detail detail_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<Profile::HostSpan> host_;
  std::vector<GpuSpan> gpu_;     // on the clock of the GPU until placed_
  size_t placed_ = 0;            // of gpu_: those on the clock of the host
  std::optional<double> least_;  // bounds of what is added to the GPU's clock
  std::optional<double> most_;
  std::optional<double> waiting_since_;
  std::vector<Item> items_;
  std::vector<Timer> timers_;
  std::vector<Pending> pending_;
  std::set<std::string, std::less<>> texts_;
};

// The time of a block of code as a phase; without a profiler nothing.
class PhaseTimer {
 public:
  PhaseTimer(Profiler* profiler, Profile::Phase phase)
      : profiler_(profiler), phase_(phase), begin_(profiler == nullptr ? 0 : profiler->now_us()) {}
  ~PhaseTimer() {
    if (profiler_ != nullptr) profiler_->add(phase_, begin_, profiler_->now_us());
  }
  PhaseTimer(const PhaseTimer&) = delete;
  PhaseTimer& operator=(const PhaseTimer&) = delete;

 private:
  Profiler* profiler_;
  Profile::Phase phase_;
  double begin_;
};

}  // namespace pteryx::exec
