// A kernel that is run to be timed, and nothing else.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "pteryx/base/status.h"
#include "pteryx/gpu/device.h"

namespace pteryx::gpu {

// A shader with params and some buffers, the last of them written and its first word read back.
class TimedKernel {
 public:
  TimedKernel(Device& device, std::string_view label, std::string_view code,
              std::span<const uint64_t> buffer_bytes, const std::array<uint32_t, 4>& params,
              Grid grid);
  ~TimedKernel();
  TimedKernel(const TimedKernel&) = delete;
  TimedKernel& operator=(const TimedKernel&) = delete;

  void set_grid(Grid grid) { grid_ = grid; }
  Status set_params(const std::array<uint32_t, 4>& params);
  Status settle();  // to be called first
  // Seconds of one submit of so many dispatches, until it is known to be done.
  Result<double> run(size_t dispatches);
  // Seconds of one dispatch: the best of several submits, each long enough not to count itself.
  Result<double> best();
  uint32_t result() const { return result_; }  // of the last run

 private:
  Device& device_;
  Grid grid_;
  std::vector<BufferId> buffers_;
  BufferId readback_ = BufferId::kNone;
  PipelineId pipeline_ = PipelineId::kNone;
  BindGroupId bindings_ = BindGroupId::kNone;
  Status written_;
  uint32_t result_ = 0;
};

}  // namespace pteryx::gpu
