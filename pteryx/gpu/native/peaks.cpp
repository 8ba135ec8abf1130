// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/native/peaks.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "pteryx/gpu/native/kernels.h"
#include "pteryx/gpu/native/timed_kernel.h"

namespace pteryx::gpu {
namespace {

using Clock = std::chrono::steady_clock;

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
    TimedKernel stream(device, "peak/stream", kernels::kStream, buffers,
                       {static_cast<uint32_t>(bytes / 16), 0, 0, 0}, grid);
    PTERYX_ASSIGN(const double seconds, stream.best());
    peaks.bytes_per_s = 2.0 * static_cast<double>(bytes) / seconds;
  }
  const uint32_t loops = caps.software ? 64 : 1024;
  const uint64_t buffers[] = {16};
  TimedKernel flops(device, "peak/flops", kernels::kMultiplyAdds, buffers, {loops, 1, kNobody, 0},
                    grid);
  PTERYX_ASSIGN(const double seconds, flops.best());
  peaks.flops_per_s = 2.0 * 16.0 * loops * 256.0 * grid.x / seconds;
  return peaks;
}

Status keep_busy(Device& device, double seconds) {
  const uint64_t buffers[] = {16};
  TimedKernel flops(device, "keep busy", kernels::kMultiplyAdds, buffers, {4096, 1, kNobody, 0},
                    {1024, 1, 1});
  PTERYX_TRY(flops.settle());
  const auto start = Clock::now();
  while (std::chrono::duration<double>(Clock::now() - start).count() < seconds) {
    PTERYX_ASSIGN([[maybe_unused]] const double took, flops.run(4));
  }
  return {};
}

}  // namespace pteryx::gpu
