// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>

#include "pteryx/gpu/native/kernels.h"
#include "pteryx/gpu/native/peaks.h"
#include "pteryx/gpu/native/sizes.h"
#include "pteryx/gpu/native/timed_kernel.h"

namespace pteryx::gpu {
namespace {

constexpr uint32_t kWorkgroup = 256;  // of the kernels
constexpr uint32_t kMostGroups = 1024;
constexpr uint32_t kNobody = 0xffffffff;  // writes what was computed

// Chains of multiply-adds in workgroups that each fill a processor: their time stays what one of
// them takes, until there are more of them than processors.
class ProcessorCount {
 public:
  explicit ProcessorCount(Device& device)
      : kernel_(device, "tune/multiply_adds", kernels::kMultiplyAdds, kBuffers,
                {loops_, 1, kNobody, 0}, {1, 1, 1}) {}

  Result<uint32_t> measure() {
    PTERYX_TRY(kernel_.settle());
    PTERYX_TRY(choose_loops());
    PTERYX_ASSIGN(const double one, seconds(1));
    const auto fit = [&](uint32_t groups) -> Result<bool> {
      PTERYX_ASSIGN(const double took, seconds(groups));
      return took < 1.5 * one;
    };
    uint32_t fits = 1;
    uint32_t too_many = 2;
    for (; too_many <= kMostGroups; too_many *= 2) {
      PTERYX_ASSIGN(const bool yes, fit(too_many));
      if (!yes) break;
      fits = too_many;
    }
    while (too_many - fits > 1) {
      const uint32_t middle = fits + (too_many - fits) / 2;
      PTERYX_ASSIGN(const bool yes, fit(middle));
      (yes ? fits : too_many) = middle;
    }
    return fits;
  }

 private:
  static constexpr std::array<uint64_t, 1> kBuffers = {16};

  // So many that a workgroup takes a few milliseconds, beside which a submit is nothing.
  Status choose_loops() {
    constexpr double kEnough = 2e-3;
    PTERYX_ASSIGN([[maybe_unused]] const double first, kernel_.run(1));  // drivers compile here
    PTERYX_ASSIGN(double took, seconds(1));
    while (took < kEnough && loops_ < (1U << 20)) {
      loops_ *= 2;
      PTERYX_TRY(kernel_.set_params({loops_, 1, kNobody, 0}));
      PTERYX_ASSIGN(took, seconds(1));
    }
    return {};
  }

  Result<double> seconds(uint32_t groups) {
    kernel_.set_grid({groups, 1, 1});
    double least = 1e9;
    for (int i = 0; i < 5; ++i) {
      PTERYX_ASSIGN(const double took, kernel_.run(1));
      least = std::min(least, took);
    }
    return least;
  }

  uint32_t loops_ = 256;
  TimedKernel kernel_;
};

// The most workgroups that were there at the same time, of more than any GPU holds.
Result<uint32_t> count_residents(Device& device) {
  const uint64_t buffers[] = {12};
  const bool software = device.caps().software;
  const Grid grid{software ? 64U : 8192U, 1, 1};
  TimedKernel kernel(device, "tune/residents", kernels::kResidents, buffers,
                     {software ? 4096U : 20000U, 0, 0, 0}, grid);
  PTERYX_TRY(kernel.settle());
  PTERYX_ASSIGN([[maybe_unused]] const double first, kernel.run(1));
  PTERYX_ASSIGN([[maybe_unused]] const double second, kernel.run(1));
  return std::max(kernel.result(), 1U);
}

}  // namespace

Result<Sizes> measure_sizes(Device& device) {
  PTERYX_TRY(keep_busy(device, device.caps().software ? 0 : 0.5));
  Sizes sizes;
  PTERYX_ASSIGN(sizes.processors, ProcessorCount(device).measure());
  PTERYX_ASSIGN(const uint32_t groups, count_residents(device));
  sizes.invocations = std::max(groups / sizes.processors, 1U) * kWorkgroup;
  return sizes;
}

}  // namespace pteryx::gpu
