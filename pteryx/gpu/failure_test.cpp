// What a device says when something is wrong, and that it says so instead of crashing.
// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/base/testing/late_source.h"
#include "pteryx/gpu/device.h"
#include "pteryx/gpu/native/blocking.h"
#include "pteryx/gpu/testing/compute.h"
#include "pteryx/gpu/testing/faults.h"

namespace pteryx::gpu {
namespace {

constexpr BindingKind kOutput[] = {BindingKind::kStorageReadWrite};
constexpr ShaderDesc kOne = {.label = "test/one",
                             .code = R"(
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1) fn main() { y[0] = y[0] + 1u; }
)",
                             .constants = {},
                             .bindings = kOutput};

std::string error_of(const Status& status, Code code) {
  EXPECT_EQ(status.code(), code) << status.message();
  return std::string(status.message());
}
template <typename T>
std::string error_of(const Result<T>& result, Code code) {
  if (!result.ok()) return error_of(result.status(), code);
  ADD_FAILURE() << "it worked";
  return {};
}

TEST(Failure, BufferAboveTheLimit) {
  const auto device = open_or_die();
  const uint64_t limit = device->caps().max_buffer_bytes;
  for (const uint64_t size : {limit + 1, UINT64_MAX}) {
    EXPECT_EQ(error_of(settle(*device, device->create_buffer({.size = size, .label = "huge"})),
                       Code::kMemory),
              "buffer 'huge' of " + std::to_string(size) +
                  " bytes: max_buffer_bytes of the device is " + std::to_string(limit));
  }
  EXPECT_EQ(device->counters().buffers_alive, 0u);
  EXPECT_TRUE(device->take_error().ok());
}

TEST(Failure, OutOfMemory) {
  const auto device = open_or_die();
  if (device->caps().provider != "dawn") return;  // only Dawn can pretend
  refuse_next_buffer(*device);
  const std::string message = error_of(
      settle(*device, device->create_buffer({.size = 1024, .label = "weights"})), Code::kMemory);
  EXPECT_EQ(message.find("buffer 'weights' of 1024 bytes: no memory left: "), 0u) << message;
  EXPECT_EQ(device->counters().buffers_alive, 0u);
  EXPECT_TRUE(settle(*device, device->create_buffer({.size = 1024, .label = "weights"})).ok());
}

// What failed says so again to whoever uses it, until it is destroyed.
TEST(Failure, UsingABufferThatFailed) {
  const auto device = open_or_die();
  const PipelineId pipeline = pipeline_or_die(*device, kOne);
  const BufferId huge =
      device->create_buffer({.size = device->caps().max_buffer_bytes + 1, .label = "huge"});
  const Binding binding = {.buffer = huge};
  const BindGroupId bindings = device->create_bindings(pipeline, {&binding, 1}, "b");
  const Dispatch dispatch = {pipeline, bindings, {}};
  const BufferId y = buffer_or_die(*device, {.size = 16, .label = "y"});
  const Copy copy = {.src = huge, .dst = y, .size = 16};
  const Status all[] = {device->write(huge, 0, bytes_of(uint32_t{1})), settle(*device, bindings),
                        device->submit({&dispatch, 1}, {}), device->submit({}, {&copy, 1})};
  for (const Status& s : all) EXPECT_EQ(error_of(s, Code::kMemory).find("buffer 'huge' of "), 0u);
  device->destroy(bindings);
  device->destroy(huge);
  EXPECT_EQ(error_of(settle(*device, huge), Code::kInvalidArgument),
            "the buffer asked about is not on this device");
  EXPECT_TRUE(settle(*device, y).ok());
}

TEST(Failure, SourcesThatAreLateOrFail) {
  const auto device = open_or_die();
  std::vector<uint32_t> words((9 << 20) / 4);
  for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<uint32_t>(i * 2654435761U);
  const Bytes bytes = std::as_bytes(std::span(words));
  const BufferId y = buffer_or_die(*device, {.size = bytes.size(), .label = "y"});
  auto late = std::make_shared<pteryx::testing::LateSource>("late", bytes, 4);
  ASSERT_TRUE(device->write(y, 0, late, 0, bytes.size()).ok());
  // Written behind the first, though its bytes are there.
  const uint32_t seven = 7;
  const auto now = std::make_shared<MemorySource>("now", bytes_of(seven));
  ASSERT_TRUE(device->write(y, 4, now, 0, 4).ok());
  const Result<bool> at_first = device->settled(y);
  ASSERT_TRUE(at_first.ok());
  EXPECT_FALSE(*at_first);
  ASSERT_TRUE(settle(*device, y).ok());
  words[1] = 7;
  EXPECT_EQ(values_from<uint32_t>(*device, y, words.size()), words);

  const auto bad = std::make_shared<pteryx::testing::LateSource>("bad", bytes, 1);
  bad->fail_at(5 << 20);
  ASSERT_TRUE(device->write(y, 0, bad, 0, bytes.size()).ok());
  EXPECT_EQ(error_of(settle(*device, y), Code::kIo),
            "bad: byte 5242880 cannot be read\n  while writing buffer 'y'");
}

TEST(Failure, WritesOutsideABuffer) {
  const auto device = open_or_die();
  const BufferId b = buffer_or_die(*device, {.size = 14, .label = "b"});  // rounded up to 16
  const std::vector<std::byte> bytes(17);
  EXPECT_EQ(error_of(device->write(b, 0, bytes), Code::kInvalidArgument),
            "write of 17 bytes at 0 does not fit buffer 'b' of 16");
  EXPECT_EQ(error_of(device->write(b, 16, Bytes(bytes).first(1)), Code::kInvalidArgument),
            "write of 1 bytes at 16 does not fit buffer 'b' of 16");
  EXPECT_EQ(error_of(device->write(b, 2, Bytes(bytes).first(4)), Code::kInvalidArgument),
            "write of 4 bytes at 2 does not fit buffer 'b' of 16");
  EXPECT_EQ(error_of(device->write(b, UINT64_MAX - 3, bytes), Code::kInvalidArgument),
            "write of 17 bytes at 18446744073709551612 does not fit buffer 'b' of 16");
  EXPECT_EQ(error_of(device->write(BufferId::kNone, 0, bytes), Code::kInvalidArgument),
            "the buffer written is not on this device");
  EXPECT_TRUE(device->write(b, 4, Bytes(bytes).first(4)).ok());
  EXPECT_TRUE(device->take_error().ok());
}

TEST(Failure, CopiesThatCannotBe) {
  const auto device = open_or_die();
  const BufferId a = buffer_or_die(*device, {.size = 16, .label = "a"});
  const BufferId b = buffer_or_die(*device, {.size = 16, .label = "b"});
  const BufferId back =
      buffer_or_die(*device, {.size = 16, .kind = BufferKind::kReadback, .label = "back"});
  struct Case {
    Copy copy;
    std::string_view part;
  };
  const Case cases[] = {
      {{.src = a, .dst = b, .size = 20}, "copy of 20 bytes from 0 of 'a' (16 bytes)"},
      {{.src = a, .src_offset = 8, .dst = b, .size = 12}, "out of range"},
      {{.src = a, .dst = b, .dst_offset = UINT64_MAX - 3, .size = 8}, "out of range"},
      {{.src = a, .dst = b, .size = 6}, "not a multiple of 4"},
      {{.src = a, .src_offset = 2, .dst = b, .size = 4}, "not a multiple of 4"},
      {{.src = a, .dst = a, .dst_offset = 8, .size = 4}, "another buffer"},
      {{.src = back, .dst = b, .size = 4}, "of kind storage"},
      {{.src = BufferId::kNone, .dst = b, .size = 4}, "the source of a copy is not on this device"},
      {{.src = a, .dst = BufferId::kNone, .size = 4}, "the target of a copy is not on this device"},
  };
  for (const Case& c : cases) {
    const std::string message = error_of(device->submit({}, {&c.copy, 1}), Code::kInvalidArgument);
    EXPECT_NE(message.find(c.part), std::string::npos) << message;
  }
  EXPECT_EQ(device->counters().submits, 0u);
}

TEST(Failure, DispatchesThatCannotBe) {
  const auto device = open_or_die();
  const PipelineId pipeline = pipeline_or_die(*device, kOne);
  const BufferId y = buffer_or_die(*device, {.size = 16, .label = "y"});
  const Binding binding = {.buffer = y};
  const BindGroupId bindings = bindings_or_die(*device, pipeline, {&binding, 1});
  const uint32_t limit = device->caps().max_workgroups_per_dim;
  const Dispatch no_pipeline = {PipelineId::kNone, bindings, {}};
  EXPECT_EQ(error_of(device->submit({&no_pipeline, 1}, {}), Code::kInvalidArgument),
            "the pipeline of a dispatch is not on this device");
  const Dispatch no_bindings = {pipeline, BindGroupId::kNone, {}};
  EXPECT_EQ(error_of(device->submit({&no_bindings, 1}, {}), Code::kInvalidArgument),
            "the bind group for shader 'test/one' is not on this device");
  const Dispatch too_wide = {pipeline, bindings, {1, limit + 1, 1}};
  EXPECT_EQ(error_of(device->submit({&too_wide, 1}, {}), Code::kInvalidArgument),
            "shader 'test/one': grid 1x" + std::to_string(limit + 1) + "x1 exceeds " +
                std::to_string(limit) + " in a dimension");
}

// A bind group of another layout is only seen by the library, when the commands are finished.
TEST(Failure, MismatchedBindingsAreReportedBySubmit) {
  const auto device = open_or_die();
  constexpr BindingKind kTwo[] = {BindingKind::kStorageRead, BindingKind::kStorageReadWrite};
  const PipelineId one = pipeline_or_die(*device, kOne);
  const PipelineId two = pipeline_or_die(*device, {.label = "test/two",
                                                   .code = R"(
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1) fn main() { y[0] = x[0]; }
)",
                                                   .constants = {},
                                                   .bindings = kTwo});
  const BufferId y = buffer_or_die(*device, {.size = 16, .label = "y"});
  const Binding binding = {.buffer = y};
  const BindGroupId bindings = bindings_or_die(*device, one, {&binding, 1});
  const Dispatch wrong = {two, bindings, {}};
  EXPECT_FALSE(error_of(device->submit({&wrong, 1}, {}), Code::kDevice).empty());
  const Dispatch right = {one, bindings, {}};
  EXPECT_TRUE(device->submit({&right, 1}, {}).ok());
  EXPECT_EQ(values_from<uint32_t>(*device, y, 1), std::vector<uint32_t>{1});
}

TEST(Failure, ReadsThatCannotBe) {
  const auto device = open_or_die();
  const BufferId y = buffer_or_die(*device, {.size = 16, .label = "y"});
  const BufferId back =
      buffer_or_die(*device, {.size = 16, .kind = BufferKind::kReadback, .label = "back"});
  EXPECT_EQ(error_of(device->read(y, 0, 4), Code::kInvalidArgument),
            "buffer 'y' is not of kind readback, so it cannot be read");
  EXPECT_EQ(error_of(device->read(back, 8, 12), Code::kInvalidArgument),
            "read of 12 bytes at 8 does not fit buffer 'back' of 16");
  EXPECT_EQ(error_of(wait(*device, Ticket::kNone), Code::kInvalidArgument),
            "the read asked about is not on this device");

  const Result<Ticket> ticket = device->read(back, 0, 16);
  ASSERT_TRUE(ticket.ok());
  EXPECT_EQ(error_of(device->read(back, 0, 4), Code::kInvalidArgument),
            "buffer 'back' is being read already");
  const Copy copy = {.src = y, .dst = back, .size = 4};
  EXPECT_EQ(error_of(device->submit({}, {&copy, 1}), Code::kInvalidArgument),
            "copy to buffer 'back' while it is read");
  EXPECT_EQ(error_of(device->write(back, 0, bytes_of(uint32_t{1})), Code::kInvalidArgument),
            "write to buffer 'back' while it is read");
  device->release(*ticket);  // before it is done
  EXPECT_TRUE(device->submit({}, {&copy, 1}).ok());

  const Result<Ticket> orphan = device->read(back, 0, 16);
  ASSERT_TRUE(orphan.ok());
  device->destroy(back);
  EXPECT_EQ(error_of(wait(*device, *orphan), Code::kDevice),
            "read of buffer '': its buffer was destroyed");
  EXPECT_TRUE(device->mapped(*orphan).empty());
  device->release(*orphan);
  EXPECT_TRUE(device->take_error().ok());
}

TEST(Failure, ClosingWithAReadUnderWay) {
  const auto device = open_or_die();
  const BufferId back =
      buffer_or_die(*device, {.size = 16, .kind = BufferKind::kReadback, .label = "back"});
  EXPECT_TRUE(device->read(back, 0, 16).ok());
}

TEST(Failure, ALostDeviceOnlyReturnsErrors) {
  const auto device = open_or_die();
  const PipelineId pipeline = pipeline_or_die(*device, kOne);
  const BufferId y = buffer_or_die(*device, {.size = 16, .label = "y"});
  const BufferId back =
      buffer_or_die(*device, {.size = 16, .kind = BufferKind::kReadback, .label = "back"});
  const Binding binding = {.buffer = y};
  const BindGroupId bindings = bindings_or_die(*device, pipeline, {&binding, 1});
  const Dispatch dispatch = {pipeline, bindings, {}};
  const Copy copy = {.src = y, .dst = back, .size = 16};
  ASSERT_TRUE(device->submit({&dispatch, 1}, {&copy, 1}).ok());
  const Result<Ticket> ticket = device->read(back, 0, 16);
  ASSERT_TRUE(ticket.ok());

  lose(*device);
  const std::string_view lost = "the GPU device is lost: ";
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(error_of(device->write(y, 0, bytes_of(uint32_t{1})), Code::kDevice).find(lost), 0u);
    EXPECT_EQ(error_of(device->submit({&dispatch, 1}, {&copy, 1}), Code::kDevice).find(lost), 0u);
    EXPECT_EQ(error_of(wait(*device, *ticket), Code::kDevice).find(lost), 0u);
    EXPECT_TRUE(device->mapped(*ticket).empty());
    EXPECT_EQ(
        error_of(settle(*device, device->create_buffer({.size = 4, .label = "b"})), Code::kDevice)
            .find(lost),
        0u);
    EXPECT_EQ(error_of(settle(*device, device->create_pipeline(kOne)), Code::kDevice).find(lost),
              0u);
    const BindGroupId more = device->create_bindings(pipeline, {&binding, 1}, "b");
    EXPECT_EQ(error_of(settle(*device, more), Code::kDevice).find(lost), 0u);
    EXPECT_EQ(error_of(device->read(back, 0, 4), Code::kDevice).find(lost), 0u);
    EXPECT_EQ(error_of(device->take_error(), Code::kDevice).find(lost), 0u);
  }
  device->release(*ticket);
  device->destroy(bindings);
  device->destroy(y);
  device->destroy(back);

  const auto next = open_or_die();
  const BufferId z = buffer_with(*next, bytes_of(uint32_t{5}));
  EXPECT_EQ(values_from<uint32_t>(*next, z, 1), std::vector<uint32_t>{5});
}

// Whatever call comes first after the loss reports it; none crashes.
TEST(Failure, AnyCallMayBeTheFirstAfterALoss) {
  struct Things {
    Device& device;
    Dispatch dispatch;
    Binding binding;
    BufferId y, back;
  };
  using Call = Status (*)(const Things&);
  const Call calls[] = {
      [](const Things& t) { return t.device.write(t.y, 0, bytes_of(uint32_t{1})); },
      [](const Things& t) { return t.device.submit({&t.dispatch, 1}, {}); },
      [](const Things& t) {
        const Copy copy = {.src = t.y, .dst = t.back, .size = 16};
        return t.device.submit({}, {&copy, 1});
      },
      [](const Things& t) { return t.device.submit({}, {}); },
      [](const Things& t) {
        return settle(t.device, t.device.create_buffer({.size = 4, .label = "b"}));
      },
      [](const Things& t) {
        const ShaderDesc other = {.label = "test/other",
                                  .code = "@compute @workgroup_size(1) fn main() {}"};
        return settle(t.device, t.device.create_pipeline(other));
      },
      [](const Things& t) {
        return settle(t.device,
                      t.device.create_bindings(t.dispatch.pipeline, {&t.binding, 1}, "b"));
      },
      [](const Things& t) {
        PTERYX_ASSIGN(const Ticket ticket, t.device.read(t.back, 0, 16));
        return wait(t.device, ticket);
      },
  };
  for (const Call call : calls) {
    const auto device = open_or_die();
    const PipelineId pipeline = pipeline_or_die(*device, kOne);
    const BufferId y = buffer_or_die(*device, {.size = 16, .label = "y"});
    const BufferId back =
        buffer_or_die(*device, {.size = 16, .kind = BufferKind::kReadback, .label = "back"});
    const Binding binding = {.buffer = y};
    const BindGroupId bindings = bindings_or_die(*device, pipeline, {&binding, 1});
    lose(*device);
    const Things things = {*device, {pipeline, bindings, {}}, binding, y, back};
    EXPECT_EQ(call(things).code(), Code::kDevice) << "call " << &call - calls;
  }
}

}  // namespace
}  // namespace pteryx::gpu
