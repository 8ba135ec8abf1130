// What runs cost: the host's time by phase, and the GPU's by dispatch where it has timestamps.
//
//   pteryx::Profile profile(session.device());
//   auto outputs = session.run("forward", inputs, {.profile = &profile});
//   // until it says true, which gpu::finish(device, profile) waits for:
//   auto there = profile.advance();
//   for (const auto& g : profile.gpu()) use(g.kernel, g.end_us - g.begin_us);
//
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "pteryx/base/status.h"

namespace pteryx {

namespace exec {
class Profiler;
}
namespace gpu {
class Device;
}

class Profile {
 public:
  enum class Detail : uint8_t {
    kSubmits,     // the GPU runs as it always does
    kDispatches,  // each dispatch has a pass of its own, which takes longer as a whole
  };
  explicit Profile(std::shared_ptr<gpu::Device> device, Detail detail = Detail::kDispatches);
  Profile(Profile&&) noexcept;
  Profile& operator=(Profile&&) noexcept;
  ~Profile();

  enum class Phase : uint8_t {
    kShapes,  // sizes, and the recording that fits them
    kWrites,  // inputs and scalars on their way to the GPU
    kEncode,
    kSubmit,
    kHost,  // operators that run on the CPU
    kWait,  // for the GPU
    kRead,  // results out of mapped memory
  };
  // Times are in microseconds of the host's clock since the profile was made.
  struct HostSpan {
    Phase phase = Phase::kShapes;
    double begin_us = 0;
    double end_us = 0;
  };
  struct GpuSpan {
    std::string_view kernel;  // its label; "" of a whole submit
    std::string_view method;
    std::string_view op;  // "" of what no operator does
    uint32_t node = 0;
    double begin_us = 0;
    double end_us = 0;
    double bytes = 0;  // of what is bound, where the operator does not know better
    double flops = 0;  // of matrix products, convolutions and attention
  };

  // Brings in the times of the runs so far; true once all are there. Errors: kDevice.
  Result<bool> advance();
  std::span<const HostSpan> host() const;
  // In the order of execution, put on the host's clock by the moments of submission. Empty where
  // the device has no timestamps.
  std::span<const GpuSpan> gpu() const;
  bool has_timestamps() const;
  // Forgets what was measured.
  void clear();

  exec::Profiler& profiler() const { return *profiler_; }

 private:
  std::unique_ptr<exec::Profiler> profiler_;
};

std::string_view name(Profile::Phase phase);

}  // namespace pteryx
