// Once warm, the calls of a run make no heap allocation of Pteryx's own; what the WebGPU library
// does is its business.
// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/base/testing/allocations.h"
#include "pteryx/gpu/device.h"
#include "pteryx/gpu/native/blocking.h"
#include "pteryx/gpu/testing/compute.h"

namespace pteryx::gpu {
namespace {

TEST(Steady, TheCountSeesAllocations) {
  pteryx::testing::AllocationCount count;
  const std::vector<int> v(100);
  const std::string s(v.size(), 'x');
  std::string grown = s;
  grown += s;
  EXPECT_EQ(count.stop(), 4);
}

TEST(Steady, ARunAllocatesNothing) {
  const auto device = open_or_die();
  constexpr BindingKind kKinds[] = {BindingKind::kUniform, BindingKind::kStorageReadWrite};
  const PipelineId pipeline = pipeline_or_die(*device, {.label = "test/add",
                                                        .code = R"(
@group(0) @binding(0) var<uniform> step: u32;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1) fn main() { y[0] = y[0] + step; }
)",
                                                        .constants = {},
                                                        .bindings = kKinds});
  const BufferId step =
      buffer_or_die(*device, {.size = 4, .kind = BufferKind::kUniform, .label = "step"});
  const BufferId y = buffer_or_die(*device, {.size = 8, .label = "y"});
  const BufferId back[] = {
      buffer_or_die(*device, {.size = 4, .kind = BufferKind::kReadback, .label = "back 0"}),
      buffer_or_die(*device, {.size = 4, .kind = BufferKind::kReadback, .label = "back 1"})};
  const Binding list[] = {{.buffer = step}, {.buffer = y}};
  const Dispatch dispatch = {pipeline, bindings_or_die(*device, pipeline, list), {}};

  uint32_t expected = 0;
  int wrong = 0;
  const auto run = [&](uint32_t i) {
    const std::array<std::byte, 3> odd = {};
    wrong += device->write(step, 0, bytes_of(i)).ok() ? 0 : 1;
    wrong += device->write(y, 4, odd).ok() ? 0 : 1;
    std::array<Ticket, 2> tickets = {};
    for (size_t k = 0; k < 2; ++k) {
      const Copy copy = {.src = y, .dst = back[k], .size = 4};
      wrong += device->submit({&dispatch, 1}, {&copy, 1}).ok() ? 0 : 1;
      const Result<Ticket> ticket = device->read(back[k], 0, 4);
      tickets[k] = ticket.ok() ? *ticket : Ticket::kNone;
    }
    for (size_t k = 0; k < 2; ++k) {
      expected += i;
      if (k == 0) wrong += device->done(tickets[k]).ok() ? 0 : 1;
      wrong += wait(*device, tickets[k]).ok() ? 0 : 1;
      wrong += read_at<uint32_t>(device->mapped(tickets[k]), 0) == expected ? 0 : 1;
      device->release(tickets[k]);
    }
    wrong += device->take_error().ok() ? 0 : 1;
  };
  for (uint32_t i = 0; i < 10; ++i) run(i);
  pteryx::testing::AllocationCount count;
  for (uint32_t i = 0; i < 100; ++i) run(i);
  const int allocations = count.stop();
  EXPECT_EQ(allocations, 0);
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace pteryx::gpu
