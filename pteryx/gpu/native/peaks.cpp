// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/native/peaks.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "pteryx/gpu/native/blocking.h"

namespace pteryx::gpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kStream = R"(
@group(0) @binding(0) var<uniform> n: vec4<u32>;
@group(0) @binding(1) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<u32>>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  for (var i = id.x; i < n.x; i += groups.x * 256u) { y[i] = x[i]; }
}
)";

constexpr std::string_view kFlops = R"(
@group(0) @binding(0) var<uniform> n: vec4<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let m = vec4<f32>(f32(n.y) * 0.5);
  var a = vec4<f32>(f32(id.x)); var b = a + 1.0; var c = a + 2.0; var d = a + 3.0;
  for (var i = 0u; i < n.x; i++) {
    a = fma(a, m, b); b = fma(b, m, c); c = fma(c, m, d); d = fma(d, m, a);
  }
  if (id.x == n.z) { y[0] = a + b + c + d; }
}
)";

// A shader with params and some buffers, the last of them written.
class Kernel {
 public:
  Kernel(Device& device, std::string_view label, std::string_view code,
         std::span<const uint64_t> buffer_bytes, const std::array<uint32_t, 4>& params, Grid grid)
      : device_(device), grid_(grid) {
    std::vector<BindingKind> kinds = {BindingKind::kUniform};
    buffers_.push_back(device.create_buffer({16, BufferKind::kUniform, label}));
    written_ = device.write(buffers_[0], 0, std::as_bytes(std::span(params)));
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
  ~Kernel() {
    device_.destroy(bindings_);
    for (const BufferId b : buffers_) device_.destroy(b);
    device_.destroy(readback_);
  }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  Status settle() {
    PTERYX_TRY(std::move(written_));
    for (const BufferId b : buffers_) PTERYX_TRY(gpu::settle(device_, b));
    PTERYX_TRY(gpu::settle(device_, pipeline_));
    return gpu::settle(device_, bindings_);
  }

  // Seconds of one submit of so many dispatches, until it is known to be done.
  Result<double> run(size_t dispatches) {
    const std::vector<Dispatch> all(dispatches, {pipeline_, bindings_, grid_});
    const Copy copy{buffers_.back(), 0, readback_, 0, 4};
    const auto start = Clock::now();
    PTERYX_TRY(device_.submit(all, std::span(&copy, 1)));
    PTERYX_ASSIGN(const Ticket ticket, device_.read(readback_, 0, 4));
    PTERYX_TRY(wait(device_, ticket));
    device_.release(ticket);
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  // Seconds of one dispatch: the best of several submits, each long enough not to count itself.
  Result<double> best() {
    constexpr double kSubmit = 0.02;
    constexpr double kInAll = 0.25;
    constexpr size_t kMost = 64;
    PTERYX_TRY(settle());
    PTERYX_ASSIGN([[maybe_unused]] const double first, run(1));  // drivers compile here
    PTERYX_ASSIGN(const double once, run(1));
    const size_t count = std::clamp(static_cast<size_t>(kSubmit / once), size_t{1}, kMost);
    const auto start = Clock::now();
    double least = once;
    for (int i = 0; i < 8 && std::chrono::duration<double>(Clock::now() - start).count() < kInAll;
         ++i) {
      PTERYX_ASSIGN(const double seconds, run(count));
      least = std::min(least, seconds / static_cast<double>(count));
    }
    return least;
  }

 private:
  Device& device_;
  Grid grid_;
  std::vector<BufferId> buffers_;
  BufferId readback_ = BufferId::kNone;
  PipelineId pipeline_ = PipelineId::kNone;
  BindGroupId bindings_ = BindGroupId::kNone;
  Status written_;
};

constexpr uint32_t kNobody = std::numeric_limits<uint32_t>::max();  // writes what was computed

}  // namespace

Result<Peaks> measure_peaks(Device& device) {
  const Caps& caps = device.caps();
  const uint64_t wanted = uint64_t{caps.software ? 16U : 512U} << 20;
  const uint64_t bytes =
      std::min({wanted, caps.max_buffer_bytes, caps.max_binding_bytes}) / 16 * 16;
  const Grid grid{caps.software ? 64U : 8192U, 1, 1};
  Peaks peaks;
  {
    const uint64_t buffers[] = {bytes, bytes};
    Kernel stream(device, "peak/stream", kStream, buffers,
                  {static_cast<uint32_t>(bytes / 16), 0, 0, 0}, grid);
    PTERYX_ASSIGN(const double seconds, stream.best());
    peaks.bytes_per_s = 2.0 * static_cast<double>(bytes) / seconds;
  }
  const uint32_t loops = caps.software ? 64 : 1024;
  const uint64_t buffers[] = {16};
  Kernel flops(device, "peak/flops", kFlops, buffers, {loops, 1, kNobody, 0}, grid);
  PTERYX_ASSIGN(const double seconds, flops.best());
  peaks.flops_per_s = 2.0 * 16.0 * loops * 256.0 * grid.x / seconds;
  return peaks;
}

Status keep_busy(Device& device, double seconds) {
  const uint64_t buffers[] = {16};
  Kernel flops(device, "keep busy", kFlops, buffers, {4096, 1, kNobody, 0}, {1024, 1, 1});
  PTERYX_TRY(flops.settle());
  const auto start = Clock::now();
  while (std::chrono::duration<double>(Clock::now() - start).count() < seconds) {
    PTERYX_ASSIGN([[maybe_unused]] const double took, flops.run(4));
  }
  return {};
}

}  // namespace pteryx::gpu
