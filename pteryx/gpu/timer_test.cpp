// Times of passes by the GPU's own clock. SPDX-License-Identifier: BSD-3-Clause
#include <chrono>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/gpu/device.h"
#include "pteryx/gpu/native/blocking.h"
#include "pteryx/gpu/testing/compute.h"

namespace pteryx::gpu {
namespace {

// A dispatch that takes as long as it is told.
class Spin {
 public:
  explicit Spin(Device& device) : device_(device) {
    constexpr BindingKind kKinds[] = {BindingKind::kUniform, BindingKind::kStorageReadWrite};
    pipeline_ = pipeline_or_die(device, {.label = "test/spin",
                                         .code = R"(
@group(0) @binding(0) var<uniform> turns: u32;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1) fn main() {
  var x = y[0];
  for (var i = 0u; i < turns; i++) { x = x * 1664525u + 1013904223u; }
  y[0] = x;
}
)",
                                         .constants = {},
                                         .bindings = kKinds});
    y_ = buffer_or_die(device, {.size = 16, .label = "y"});
  }
  Dispatch turns(uint32_t n) {
    const BufferId params =
        buffer_or_die(device_, {.size = 16, .kind = BufferKind::kUniform, .label = "turns"});
    EXPECT_TRUE(device_.write(params, 0, bytes_of(n)).ok());
    const Binding list[] = {{.buffer = params}, {.buffer = y_}};
    return {pipeline_, bindings_or_die(device_, pipeline_, list), {}};
  }

 private:
  Device& device_;
  PipelineId pipeline_ = PipelineId::kNone;
  BufferId y_ = BufferId::kNone;
};

struct Pass {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t ticks() const { return end - begin; }
};

std::vector<Pass> times_of(Device& device, TimerId timer) {
  const Result<Ticket> ticket = device.read_times(timer);
  EXPECT_TRUE(ticket.ok()) << ticket.status().message();
  if (!ticket.ok() || !wait(device, *ticket).ok()) return {};
  const Bytes bytes = device.mapped(*ticket);
  std::vector<Pass> passes(bytes.size() / sizeof(Pass));
  std::memcpy(passes.data(), bytes.data(), bytes.size());
  device.release(*ticket);
  return passes;
}

constexpr uint32_t kShort = 1000;
constexpr uint32_t kLong = 10'000'000;

TEST(Timer, EachDispatchHasItsTime) {
  Device& device = *shared_device();
  ASSERT_TRUE(device.caps().timestamps);
  Spin spin(device);
  const Dispatch list[] = {spin.turns(kShort), spin.turns(kLong), spin.turns(kShort)};
  const TimerId timer = device.create_timer(3);
  Timing timing{.timer = timer, .each = Timing::Each::kDispatch};
  ASSERT_TRUE(device.submit_timed(list, {}, timing).ok());
  times_of(device, timer);  // drivers compile at the first dispatch
  const Counters before = device.counters();
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(device.submit_timed(list, {}, timing).ok());
  const std::vector<Pass> passes = times_of(device, timer);
  const double took =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ASSERT_EQ(passes.size(), 3U);
  EXPECT_EQ(device.counters().passes - before.passes, 3U);
  EXPECT_GT(passes[1].ticks(), 10 * passes[0].ticks());
  EXPECT_GT(passes[1].ticks(), 10 * passes[2].ticks());
  EXPECT_LE(passes[0].end, passes[1].begin);
  EXPECT_LE(passes[1].end, passes[2].begin);
  // In seconds of the host, less than what the host saw.
  const double gpu =
      static_cast<double>(passes[2].end - passes[0].begin) * device.caps().timestamp_ns * 1e-9;
  EXPECT_LT(gpu, took);
  EXPECT_GT(gpu, took / 10);
  EXPECT_GT(timing.encode_ns, 0U);
  EXPECT_GT(timing.submit_ns, 0U);
  EXPECT_LT(static_cast<double>(timing.encode_ns + timing.submit_ns) * 1e-9, took);
  device.destroy(timer);
}

TEST(Timer, ASubmitIsOnePassAndATimerServesAgain) {
  Device& device = *shared_device();
  Spin spin(device);
  const Dispatch list[] = {spin.turns(kShort), spin.turns(kLong)};
  const TimerId timer = device.create_timer(1);
  Timing timing{.timer = timer};
  uint64_t last = 0;
  for (int turn = 0; turn < 2; ++turn) {
    const Counters before = device.counters();
    ASSERT_TRUE(device.submit_timed(list, {}, timing).ok());
    const std::vector<Pass> passes = times_of(device, timer);
    ASSERT_EQ(passes.size(), 1U);
    EXPECT_EQ(device.counters().passes - before.passes, 1U);
    EXPECT_GT(passes[0].ticks(), 0U);
    EXPECT_GT(passes[0].begin, last);
    last = passes[0].end;
  }
  device.destroy(timer);
}

// More than WebGPU has in one set of queries.
TEST(Timer, ManyDispatches) {
  Device& device = *shared_device();
  Spin spin(device);
  std::vector<Dispatch> list(3000, spin.turns(1));
  list[5].grid = {0, 1, 1};  // left out, and has no time
  const TimerId timer = device.create_timer(3000);
  Timing timing{.timer = timer, .each = Timing::Each::kDispatch};
  ASSERT_TRUE(device.submit_timed(list, {}, timing).ok());
  const std::vector<Pass> passes = times_of(device, timer);
  ASSERT_EQ(passes.size(), 2999U);
  for (size_t i = 0; i < passes.size(); ++i) {
    ASSERT_GE(passes[i].end, passes[i].begin) << i;
    ASSERT_GE(passes[i].begin, i == 0 ? 0 : passes[i - 1].end) << i;
  }
  device.destroy(timer);
}

TEST(Timer, RefusalsAreNamed) {
  Device& device = *shared_device();
  Spin spin(device);
  const Dispatch list[] = {spin.turns(1), spin.turns(1)};
  const TimerId timer = device.create_timer(1);
  Timing timing{.timer = timer, .each = Timing::Each::kDispatch};
  EXPECT_EQ(device.submit_timed(list, {}, timing).message(),
            "2 passes are timed with a timer for 1");
  timing.each = Timing::Each::kSubmit;
  ASSERT_TRUE(device.submit_timed(list, {}, timing).ok());
  const Result<Ticket> ticket = device.read_times(timer);
  ASSERT_TRUE(ticket.ok());
  EXPECT_EQ(device.submit_timed(list, {}, timing).message(),
            "a submit is timed while the times of the one before are read");
  device.destroy(timer);  // with its read
  device.release(*ticket);
  EXPECT_EQ(device.read_times(timer).status().message(), "the timer read is not on this device");

  const auto masked = open_or_die({.disable = "timestamps"});
  const TimerId none = masked->create_timer(1);
  Timing nothing{.timer = none};
  const Status s = masked->submit_timed({}, {}, nothing);
  EXPECT_EQ(s.code(), Code::kUnsupported);
  EXPECT_EQ(s.message(), "the device has no timestamps");
}

}  // namespace
}  // namespace pteryx::gpu
