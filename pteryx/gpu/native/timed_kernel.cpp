// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/native/timed_kernel.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "pteryx/gpu/native/blocking.h"

namespace pteryx::gpu {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

TimedKernel::TimedKernel(Device& device, std::string_view label, std::string_view code,
                         std::span<const uint64_t> buffer_bytes,
                         const std::array<uint32_t, 4>& params, Grid grid)
    : device_(device), grid_(grid) {
  std::vector<BindingKind> kinds = {BindingKind::kUniform};
  buffers_.push_back(device.create_buffer({16, BufferKind::kUniform, label}));
  written_ = set_params(params);
  for (size_t i = 0; i < buffer_bytes.size(); ++i) {
    buffers_.push_back(device.create_buffer({buffer_bytes[i], BufferKind::kStorage, label}));
    const bool last = i + 1 == buffer_bytes.size();
    kinds.push_back(last ? BindingKind::kStorageReadWrite : BindingKind::kStorageRead);
  }
  std::vector<Binding> bindings;
  bindings.reserve(buffers_.size());
  for (const BufferId b : buffers_) bindings.push_back({b, 0, 0});
  readback_ = device.create_buffer({4, BufferKind::kReadback, label});
  pipeline_ =
      device.create_pipeline({.label = label, .code = code, .constants = {}, .bindings = kinds});
  bindings_ = device.create_bindings(pipeline_, bindings, label);
}

TimedKernel::~TimedKernel() {
  device_.destroy(bindings_);
  for (const BufferId b : buffers_) device_.destroy(b);
  device_.destroy(readback_);
}

Status TimedKernel::set_params(const std::array<uint32_t, 4>& params) {
  return device_.write(buffers_[0], 0, std::as_bytes(std::span(params)));
}

Status TimedKernel::settle() {
  PTERYX_TRY(std::exchange(written_, Status()));
  for (const BufferId b : buffers_) PTERYX_TRY(gpu::settle(device_, b));
  PTERYX_TRY(gpu::settle(device_, pipeline_));
  return gpu::settle(device_, bindings_);
}

Result<double> TimedKernel::run(size_t dispatches) {
  const std::vector<Dispatch> all(dispatches, {pipeline_, bindings_, grid_});
  const Copy copy{buffers_.back(), 0, readback_, 0, 4};
  const auto start = Clock::now();
  PTERYX_TRY(device_.submit(all, std::span(&copy, 1)));
  PTERYX_ASSIGN(const Ticket ticket, device_.read(readback_, 0, 4));
  PTERYX_TRY(wait(device_, ticket));
  const double seconds = seconds_since(start);
  if (const Bytes word = device_.mapped(ticket); word.size() >= sizeof(result_))
    std::memcpy(&result_, word.data(), sizeof(result_));
  device_.release(ticket);
  return seconds;
}

Result<double> TimedKernel::best() {
  constexpr double kSubmit = 0.02;
  constexpr double kInAll = 0.25;
  constexpr size_t kMost = 64;
  PTERYX_TRY(settle());
  PTERYX_ASSIGN([[maybe_unused]] const double first, run(1));  // drivers compile here
  PTERYX_ASSIGN(const double once, run(1));
  const size_t count = std::clamp(static_cast<size_t>(kSubmit / once), size_t{1}, kMost);
  const auto start = Clock::now();
  double least = once;
  for (int i = 0; i < 8 && seconds_since(start) < kInAll; ++i) {
    PTERYX_ASSIGN(const double seconds, run(count));
    least = std::min(least, seconds / static_cast<double>(count));
  }
  return least;
}

}  // namespace pteryx::gpu
