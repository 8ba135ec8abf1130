// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/device.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/gpu/grid.h"
#include "pteryx/gpu/native/blocking.h"
#include "pteryx/gpu/testing/compute.h"

namespace pteryx::gpu {
namespace {

constexpr BindingKind kScaleKinds[] = {BindingKind::kUniform, BindingKind::kStorageRead,
                                       BindingKind::kStorageReadWrite};
// y = x * factor + 1, one workgroup per 64 elements on a folded grid.
constexpr ShaderDesc kScale = {.label = "test/scale",
                               .code = R"(
struct Params { count: u32, factor: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
override wg_size: u32 = 64;
@compute @workgroup_size(wg_size)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let i = (group.y * groups.x + group.x) * wg_size + lane;
  if (i < params.count) { y[i] = x[i] * params.factor + 1u; }
}
)",
                               .constants = {},
                               .bindings = kScaleKinds};
struct ScaleParams {
  uint32_t count, factor;
};

// Everything one user of the device needs to run kScale again and again.
class Scaler {
 public:
  Scaler(Device& device, uint32_t count)
      : device_(device),
        count_(count),
        pipeline_(pipeline_or_die(device, kScale)),
        params_(
            buffer_or_die(device, {.size = 8, .kind = BufferKind::kUniform, .label = "params"})),
        x_(buffer_or_die(device, {.size = count * 4, .label = "x"})),
        y_(buffer_or_die(device, {.size = count * 4, .label = "y"})),
        back_(buffer_or_die(device,
                            {.size = count * 4, .kind = BufferKind::kReadback, .label = "back"})) {
    const Binding bindings[] = {{.buffer = params_}, {.buffer = x_}, {.buffer = y_}};
    bindings_ = bindings_or_die(device, pipeline_, bindings);
  }
  ~Scaler() {
    device_.destroy(bindings_);
    for (const BufferId id : {params_, x_, y_, back_}) device_.destroy(id);
  }
  Scaler(const Scaler&) = delete;
  Scaler& operator=(const Scaler&) = delete;

  Status write(std::span<const uint32_t> x, uint32_t factor) {
    PTERYX_TRY(device_.write(x_, 0, std::as_bytes(x)));
    return device_.write(params_, 0, bytes_of(ScaleParams{count_, factor}));
  }
  Status submit() {
    const Dispatch dispatch = {pipeline_, bindings_, flat_grid(div_up(count_, 64), device_.caps())};
    const Copy copy = {.src = y_, .dst = back_, .size = uint64_t{count_} * 4};
    return device_.submit({&dispatch, 1}, {&copy, 1});
  }
  // Whether every y is as it should be.
  Result<bool> read(std::span<const uint32_t> x, uint32_t factor) {
    PTERYX_ASSIGN(const Ticket ticket, device_.read(back_, 0, uint64_t{count_} * 4));
    PTERYX_TRY(wait(device_, ticket));
    const Bytes bytes = device_.mapped(ticket);
    bool right = bytes.size() == uint64_t{count_} * 4;
    for (uint32_t i = 0; right && i < count_; ++i) {
      right = read_at<uint32_t>(bytes, uint64_t{i} * 4) == x[i] * factor + 1;
    }
    device_.release(ticket);
    return right;
  }

 private:
  Device& device_;
  uint32_t count_;
  PipelineId pipeline_;
  BufferId params_, x_, y_, back_;
  BindGroupId bindings_ = BindGroupId::kNone;
};

std::vector<uint32_t> counting(size_t n, uint32_t from = 0) {
  std::vector<uint32_t> v(n);
  std::iota(v.begin(), v.end(), from);
  return v;
}

TEST(Device, SaysWhatItIs) {
  const auto device = open_or_die();
  const Caps& caps = device->caps();
  EXPECT_FALSE(caps.adapter.empty());
  EXPECT_TRUE(caps.provider == "dawn" || caps.provider == "wgpu") << caps.provider;
  EXPECT_GE(caps.max_buffer_bytes, uint64_t{256} << 20);
  EXPECT_GE(caps.max_binding_bytes, uint64_t{128} << 20);
  EXPECT_GE(caps.max_invocations, 256u);
  EXPECT_TRUE(caps.dot4);
  EXPECT_EQ(caps.subgroups, caps.subgroup_max > 0);
  EXPECT_LE(caps.subgroup_min, caps.subgroup_max);
  EXPECT_EQ(device->counters().buffers_created, 0u);
  EXPECT_EQ(device->counters().pipelines_created, 0u);
}

TEST(Device, ComputesAndReadsBack) {
  const auto device = open_or_die();
  const std::vector<uint32_t> x = counting(1000);
  Scaler scaler(*device, 1000);
  for (const uint32_t factor : {3u, 5u}) {
    ASSERT_TRUE(scaler.write(x, factor).ok());
    ASSERT_TRUE(scaler.submit().ok());
    const Result<bool> right = scaler.read(x, factor);
    ASSERT_TRUE(right.ok()) << right.status().message();
    EXPECT_TRUE(*right) << "factor " << factor;
  }
}

TEST(Device, WritesAnyLength) {
  const auto device = open_or_die();
  for (const size_t length : std::initializer_list<size_t>{0, 1, 2, 3, 4, 5, 7, 1023, 4097}) {
    std::vector<std::byte> bytes(length);
    for (size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>(i % 251 + 1);
    const BufferId buffer = buffer_or_die(*device, {.size = 4100, .label = "any length"});
    const std::vector<std::byte> before(4100, std::byte{0xFF});
    ASSERT_TRUE(device->write(buffer, 0, before).ok());
    ASSERT_TRUE(device->write(buffer, 0, bytes).ok());
    const std::vector<std::byte> after = bytes_from(*device, buffer, 0, 4100);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), after.begin())) << length;
    for (size_t i = length; i < align_up(length, 4); ++i) EXPECT_EQ(after[i], std::byte{0}) << i;
    for (size_t i = align_up(length, 4); i < 4100; ++i) ASSERT_EQ(after[i], std::byte{0xFF}) << i;
    device->destroy(buffer);
  }
}

TEST(Device, LargeWritesArriveWhole) {
  const auto device = open_or_die();
  const std::vector<uint32_t> words = counting((size_t{70} << 20) / 4, 5);
  const BufferId buffer = buffer_with(*device, std::as_bytes(std::span(words)), "large");
  const std::vector<uint32_t> got = values_from<uint32_t>(*device, buffer, words.size());
  EXPECT_TRUE(got == words);
}

TEST(Device, ReadsAnyRange) {
  const auto device = open_or_die();
  std::array<std::byte, 64> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  const BufferId source = buffer_with(*device, bytes);
  const BufferId back =
      buffer_or_die(*device, {.size = 64, .kind = BufferKind::kReadback, .label = "back"});
  const Copy copy = {.src = source, .dst = back, .size = 64};
  ASSERT_TRUE(device->submit({}, {&copy, 1}).ok());
  for (const auto& [offset, size] : std::vector<std::pair<uint64_t, uint64_t>>{
           {0, 64}, {0, 0}, {64, 0}, {4, 4}, {12, 8}, {1, 1}, {7, 9}, {63, 1}, {61, 3}}) {
    const Result<Ticket> ticket = device->read(back, offset, size);
    ASSERT_TRUE(ticket.ok()) << ticket.status().message();
    ASSERT_TRUE(wait(*device, *ticket).ok());
    const Bytes got = device->mapped(*ticket);
    ASSERT_EQ(got.size(), size);
    EXPECT_TRUE(std::equal(got.begin(), got.end(), bytes.begin() + static_cast<ptrdiff_t>(offset)));
    device->release(*ticket);
  }
}

TEST(Device, BuffersStartAtZero) {
  const auto device = open_or_die();
  const BufferId buffer = buffer_or_die(*device, {.size = 100000, .label = "fresh"});
  const std::vector<std::byte> bytes = bytes_from(*device, buffer, 0, 100000);
  EXPECT_TRUE(std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; }));
}

TEST(Device, DonePollsWithoutBlocking) {
  const auto device = open_or_die();
  const BufferId source = buffer_with(*device, bytes_of(uint32_t{7}));
  const BufferId back =
      buffer_or_die(*device, {.size = 4, .kind = BufferKind::kReadback, .label = "back"});
  const Copy copy = {.src = source, .dst = back, .size = 4};
  ASSERT_TRUE(device->submit({}, {&copy, 1}).ok());
  const Result<Ticket> ticket = device->read(back, 0, 4);
  ASSERT_TRUE(ticket.ok());
  while (!*device->done(*ticket)) std::this_thread::yield();
  EXPECT_EQ(read_at<uint32_t>(device->mapped(*ticket), 0), 7u);
  EXPECT_TRUE(wait(*device, *ticket).ok());
  device->release(*ticket);
}

TEST(Device, LeavesOutEmptyGrids) {
  const auto device = open_or_die();
  const PipelineId pipeline = pipeline_or_die(*device, kScale);
  const BufferId params =
      buffer_or_die(*device, {.size = 8, .kind = BufferKind::kUniform, .label = "params"});
  const BufferId x = buffer_with(*device, bytes_of(uint32_t{1}));
  const BufferId y = buffer_with(*device, bytes_of(uint32_t{99}));
  ASSERT_TRUE(device->write(params, 0, bytes_of(ScaleParams{1, 1})).ok());
  const Binding list[] = {{.buffer = params}, {.buffer = x}, {.buffer = y}};
  const BindGroupId bindings = bindings_or_die(*device, pipeline, list);
  const Dispatch none[] = {{pipeline, bindings, {0, 1, 1}},
                           {pipeline, bindings, {1, 0, 1}},
                           {pipeline, bindings, {1, 1, 0}}};
  const Counters before = device->counters();
  ASSERT_TRUE(device->submit(none, {}).ok());
  EXPECT_EQ(device->counters().dispatches, before.dispatches);
  EXPECT_EQ(device->counters().passes, before.passes);
  EXPECT_EQ(device->counters().submits, before.submits + 1);
  EXPECT_EQ(values_from<uint32_t>(*device, y, 1), std::vector<uint32_t>{99});
}

// So many that the device begins before it has them all.
TEST(Device, RunsLongChainsInOrder) {
  const std::shared_ptr<Device> device = open_or_die();
  constexpr uint32_t kLinks = 200;
  const PipelineId pipeline = pipeline_or_die(*device, kScale);
  const BufferId params =
      buffer_or_die(*device, {.size = 8, .kind = BufferKind::kUniform, .label = "params"});
  ASSERT_TRUE(device->write(params, 0, bytes_of(ScaleParams{1, 3})).ok());
  const BufferId ends[] = {buffer_or_die(*device, {.size = 4, .label = "x"}),
                           buffer_or_die(*device, {.size = 4, .label = "y"})};
  const Binding there[] = {{.buffer = params}, {.buffer = ends[0]}, {.buffer = ends[1]}};
  const Binding back[] = {{.buffer = params}, {.buffer = ends[1]}, {.buffer = ends[0]}};
  const BindGroupId groups[] = {bindings_or_die(*device, pipeline, there),
                                bindings_or_die(*device, pipeline, back)};
  std::vector<Dispatch> chain;
  uint32_t want = 0;
  for (uint32_t i = 0; i < kLinks; ++i) {
    chain.push_back({pipeline, groups[i % 2], {}});
    want = want * 3 + 1;
  }
  const Counters before = device->counters();
  ASSERT_TRUE(device->submit(chain, {}).ok());
  EXPECT_EQ(device->counters().dispatches - before.dispatches, kLinks);
  EXPECT_EQ(device->counters().submits - before.submits, 3U);
  EXPECT_EQ(values_from<uint32_t>(*device, ends[0], 1), std::vector{want});
  // Who waits for a result has given it work already.
  const BufferId result =
      buffer_or_die(*device, {.size = 4, .kind = BufferKind::kReadback, .label = "result"});
  const Result<Ticket> ticket = device->read(result, 0, 4);
  ASSERT_TRUE(ticket.ok()) << ticket.status().message();
  const Counters busy = device->counters();
  ASSERT_TRUE(device->submit(chain, {}).ok());
  EXPECT_EQ(device->counters().submits - busy.submits, 1U);
  device->release(*ticket);
}

TEST(Device, RunsFoldedGrids) {
  const auto device = open_or_die();
  const uint32_t count = 70000 * 64 - 13;  // more workgroups than one dimension holds
  ASSERT_GT(flat_grid(div_up(count, 64), device->caps()).y, 1u);
  const std::vector<uint32_t> x = counting(count, 17);
  Scaler scaler(*device, count);
  ASSERT_TRUE(scaler.write(x, 2).ok());
  ASSERT_TRUE(scaler.submit().ok());
  const Result<bool> right = scaler.read(x, 2);
  ASSERT_TRUE(right.ok()) << right.status().message();
  EXPECT_TRUE(*right);
}

TEST(Device, CountsWhatItIsAsked) {
  const auto device = open_or_die();
  const std::vector<uint32_t> x = counting(10);
  {
    Scaler scaler(*device, 10);
    const Counters before = device->counters();
    ASSERT_TRUE(scaler.write(x, 1).ok());
    ASSERT_TRUE(scaler.submit().ok());
    ASSERT_TRUE(scaler.read(x, 1).ok());
    const Counters after = device->counters();
    EXPECT_EQ(after.submits - before.submits, 1u);
    EXPECT_EQ(after.passes - before.passes, 1u);
    EXPECT_EQ(after.dispatches - before.dispatches, 1u);
    EXPECT_EQ(after.writes - before.writes, 2u);
    EXPECT_EQ(after.write_bytes - before.write_bytes, 48u);
    EXPECT_EQ(after.reads - before.reads, 1u);
    EXPECT_EQ(after.read_bytes - before.read_bytes, 40u);
    EXPECT_EQ(after.buffers_alive, 4u);
    EXPECT_EQ(after.buffer_bytes_alive, 8u + 2 * 48 + 40);
    EXPECT_EQ(after.bind_groups_alive, 1u);
  }
  EXPECT_EQ(device->counters().buffers_alive, 0u);
  EXPECT_EQ(device->counters().buffer_bytes_alive, 0u);
  EXPECT_EQ(device->counters().bind_groups_alive, 0u);
  EXPECT_EQ(device->counters().buffers_created, 4u);
  EXPECT_EQ(device->counters().bind_groups_created, 1u);
}

TEST(Device, ReusesIdsOfManyBuffers) {
  const auto device = open_or_die();
  std::vector<BufferId> ids;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 100; ++i) {
      ids.push_back(buffer_or_die(*device, {.size = 1000, .label = "one of many"}));
    }
    EXPECT_EQ(device->counters().buffers_alive, 100u);
    EXPECT_EQ(device->counters().buffer_bytes_alive, 100u * 1008);
    for (const BufferId id : ids) device->destroy(id);
    const Status stale = device->write(ids.front(), 0, bytes_of(uint32_t{1}));
    EXPECT_EQ(stale.code(), Code::kInvalidArgument);
    ids.clear();
  }
  EXPECT_EQ(device->counters().buffers_created, 2000u);
  EXPECT_EQ(device->counters().buffers_alive, 0u);
}

TEST(Device, ServesTwoSessionsOnTwoThreads) {
  const auto device = open_or_die();
  std::atomic<int> right = 0;
  const auto session = [&](uint32_t count, uint32_t factor) {
    const std::vector<uint32_t> x = counting(count, factor);
    Scaler scaler(*device, count);
    for (int i = 0; i < 200; ++i) {
      if (!scaler.write(x, factor).ok() || !scaler.submit().ok()) continue;
      const Result<bool> read = scaler.read(x, factor);
      right += read.ok() && *read ? 1 : 0;
    }
  };
  std::thread other(session, 3000, 7);
  session(500, 11);
  other.join();
  EXPECT_EQ(right, 400);
  EXPECT_TRUE(device->take_error().ok());
  EXPECT_EQ(device->counters().buffers_alive, 0u);
}

TEST(Device, WaitingDoesNotShutOthersOut) {
  const auto device = open_or_die();
  constexpr BindingKind kKinds[] = {BindingKind::kStorageReadWrite};
  const PipelineId slow = pipeline_or_die(*device, {.label = "test/slow",
                                                    .code = R"(
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  var x = id.x;
  for (var i = 0u; i < 20000u; i++) { x = x * 1664525u + 1013904223u + y[63]; }
  y[id.x % 63u] = x;
}
)",
                                                    .constants = {},
                                                    .bindings = kKinds});
  const BufferId y = buffer_or_die(*device, {.size = 256, .label = "y"});
  const BufferId back =
      buffer_or_die(*device, {.size = 256, .kind = BufferKind::kReadback, .label = "back"});
  const Binding binding = {.buffer = y};
  const Dispatch dispatch = {slow, bindings_or_die(*device, slow, {&binding, 1}), {1500, 1, 1}};
  const Copy copy = {.src = y, .dst = back, .size = 256};
  ASSERT_TRUE(device->submit({&dispatch, 1}, {&copy, 1}).ok());
  const Result<Ticket> ticket = device->read(back, 0, 256);
  ASSERT_TRUE(ticket.ok());

  std::atomic<bool> waiting = true;
  std::thread waiter([&] {
    EXPECT_TRUE(wait(*device, *ticket).ok());
    waiting = false;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  // wgpu-native's own submit waits for the work before it.
  const bool submit = device->caps().provider == "dawn";
  const BufferId z = buffer_or_die(*device, {.size = 256, .label = "z"});
  for (uint32_t i = 0; i < 20; ++i) {
    EXPECT_TRUE(device->write(z, 0, bytes_of(i)).ok());
    EXPECT_TRUE(!submit || device->submit({}, {}).ok());
  }
  EXPECT_TRUE(waiting) << "the calls were held up until the GPU was done";
  waiter.join();
  device->release(*ticket);
}

}  // namespace
}  // namespace pteryx::gpu
