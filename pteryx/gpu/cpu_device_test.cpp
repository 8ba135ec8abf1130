// The device of machines without a GPU. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/cpu_device.h"

#include <array>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/gpu/testing/compute.h"

namespace pteryx::gpu {
namespace {

TEST(CpuDevice, SaysThatItIsNoGpu) {
  const auto device = cpu_device();
  const Caps& caps = device->caps();
  EXPECT_TRUE(caps.cpu);
  EXPECT_FALSE(caps.software || caps.f16 || caps.subgroups || caps.timestamps);
  EXPECT_FALSE(caps.adapter.empty());
  EXPECT_EQ(caps.adapter, cpu_name());
  EXPECT_EQ(caps.provider, "");
  EXPECT_GE(caps.max_buffer_bytes, uint64_t{1} << 30);
}

TEST(CpuDevice, BuffersHoldWhatIsWrittenAndCopied) {
  const auto device = cpu_device();
  for (const size_t length : std::initializer_list<size_t>{0, 1, 3, 4, 5, 1023}) {
    const std::vector<std::byte> bytes(length, std::byte{7});
    const BufferId buffer = buffer_or_die(*device, {.size = 1024, .label = "any length"});
    EXPECT_EQ(bytes_from(*device, buffer, 0, 1024), std::vector<std::byte>(1024));
    ASSERT_TRUE(device->write(buffer, 0, std::vector<std::byte>(1024, std::byte{0xFF})).ok());
    ASSERT_TRUE(device->write(buffer, 0, bytes).ok());
    std::vector<std::byte> want(1024, std::byte{0xFF});
    std::fill_n(want.begin(), align_up(length, 4), std::byte{0});
    std::fill_n(want.begin(), length, std::byte{7});
    EXPECT_EQ(bytes_from(*device, buffer, 0, 1024), want) << length;
    device->destroy(buffer);
  }
  EXPECT_EQ(device->counters().buffers_alive, 0U);
  EXPECT_EQ(device->counters().buffer_bytes_alive, 0U);
}

TEST(CpuDevice, ReadsAreDoneAtOnce) {
  const auto device = cpu_device();
  const std::array<uint32_t, 4> numbers = {1, 2, 3, 4};
  const BufferId from = buffer_with(*device, std::as_bytes(std::span(numbers)));
  const BufferId back = buffer_or_die(*device, {.size = 16, .kind = BufferKind::kReadback});
  const Copy copy{.src = from, .src_offset = 4, .dst = back, .dst_offset = 8, .size = 8};
  ASSERT_TRUE(device->submit({}, {&copy, 1}).ok());
  const auto ticket = device->read(back, 8, 8);
  ASSERT_TRUE(ticket.ok());
  const auto done = device->done(*ticket);
  ASSERT_TRUE(done.ok() && *done);
  const Bytes got = device->mapped(*ticket);
  ASSERT_EQ(got.size(), 8U);
  EXPECT_EQ(std::memcmp(got.data(), &numbers[1], 8), 0);
  EXPECT_EQ(device->read(back, 0, 4).status().message(), "buffer '' is being read already");
  EXPECT_EQ(device->submit({}, {&copy, 1}).message(), "copy to buffer '' while it is read");
  device->release(*ticket);
  EXPECT_TRUE(device->submit({}, {&copy, 1}).ok());
  EXPECT_EQ(device->done(*ticket).status().code(), Code::kInvalidArgument);
}

// Bytes that come when they are asked for the third time.
class LateSource final : public Source {
 public:
  explicit LateSource(Bytes bytes) : Source("late"), bytes_("late", bytes) {}
  uint64_t size() const override { return bytes_.size(); }
  Result<bool> read(uint64_t offset, MutableBytes out) const override {
    if (++asked_ < 3) return false;
    return bytes_.read(offset, out);
  }

 private:
  MemorySource bytes_;
  mutable int asked_ = 0;
};

TEST(CpuDevice, SourcesMayBeLateAndMayFail) {
  const auto device = cpu_device();
  const std::array<uint32_t, 4> numbers = {5, 6, 7, 8};
  const auto late = std::make_shared<LateSource>(std::as_bytes(std::span(numbers)));
  const BufferId buffer = buffer_or_die(*device, {.size = 16, .label = "weights"});
  ASSERT_TRUE(device->write(buffer, 4, late, 4, 6).ok());
  EXPECT_FALSE(*device->settled(buffer));
  EXPECT_TRUE(*device->settled(buffer));
  EXPECT_EQ(values_from<uint32_t>(*device, buffer, 4), (std::vector<uint32_t>{0, 6, 7, 0}));
  const Status s = device->write(buffer, 0, late, 12, 16);
  EXPECT_EQ(s.code(), Code::kIo);
  EXPECT_NE(s.message().find("while writing buffer 'weights'"), std::string::npos) << s.message();
  EXPECT_EQ(device->settled(buffer).status().code(), Code::kIo);
}

TEST(CpuDevice, RefusesShadersAndWhatDoesNotFit) {
  const auto device = cpu_device();
  constexpr std::string_view kNoShaders = "the device is the CPU, which runs no shaders";
  const PipelineId pipeline = device->create_pipeline({.label = "binary/add/f32"});
  for (const Status& s : {device->settled(pipeline).status(),
                          device->settled(device->create_bindings(pipeline, {}, "")).status(),
                          device->submit(std::array{Dispatch{}}, {})}) {
    EXPECT_EQ(s.code(), Code::kUnsupported);
    EXPECT_EQ(s.message(), kNoShaders);
  }
  const BufferId buffer = buffer_or_die(*device, {.size = 16, .label = "small"});
  EXPECT_EQ(device->write(buffer, 16, bytes_of(uint32_t{1})).message(),
            "write of 4 bytes at 16 does not fit buffer 'small' of 16");
  EXPECT_EQ(device->read(buffer, 0, 4).status().message(),
            "buffer 'small' is not of kind readback, so it cannot be read");
  const BufferId huge = device->create_buffer({.size = uint64_t{1} << 62, .label = "huge"});
  EXPECT_EQ(device->settled(huge).status().code(), Code::kMemory);
  device->destroy(huge);
  device->destroy(buffer);
  EXPECT_EQ(device->write(buffer, 0, bytes_of(uint32_t{1})).message(),
            "the buffer written is not on this device");
}

TEST(CpuDevice, IsSharedByThreads) {
  const auto device = cpu_device();
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < 200; ++i) {
        const BufferId buffer = buffer_with(*device, bytes_of(t * 1000 + i));
        EXPECT_EQ(values_from<uint32_t>(*device, buffer, 1), std::vector<uint32_t>{t * 1000 + i});
        device->destroy(buffer);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(device->counters().buffers_alive, 0U);
  EXPECT_EQ(device->counters().reads, 800U);
}

}  // namespace
}  // namespace pteryx::gpu
