// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/native/peaks.h"

#include <chrono>

#include <gtest/gtest.h>

#include "pteryx/gpu/testing/compute.h"

namespace pteryx::gpu {
namespace {

TEST(Peaks, MeasuredSoonAndLeaveNothingBehind) {
  Device& device = *shared_device();
  const Counters before = device.counters();
  const auto start = std::chrono::steady_clock::now();
  const Result<Peaks> peaks = measure_peaks(device);
  const double took =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ASSERT_TRUE(peaks.ok()) << peaks.status().message();
  EXPECT_LT(took, 5);  // of a loaded machine
  // Of anything that runs these tests.
  EXPECT_GT(peaks->bytes_per_s, 1e7);
  EXPECT_LT(peaks->bytes_per_s, 1e14);
  EXPECT_GT(peaks->flops_per_s, 1e8);
  EXPECT_LT(peaks->flops_per_s, 1e15);
  EXPECT_EQ(device.counters().buffers_alive, before.buffers_alive);
  EXPECT_EQ(device.counters().bind_groups_alive, before.bind_groups_alive);
}

TEST(Peaks, WithinSmallLimits) {
  const auto device = open_or_die({.disable = "max_binding_bytes=1MiB,max_buffer_bytes=1MiB"});
  EXPECT_TRUE(measure_peaks(*device).ok());
}

}  // namespace
}  // namespace pteryx::gpu
