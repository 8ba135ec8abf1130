// Large writes, which go through memory that the GPU copies from.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/base/source.h"
#include "pteryx/gpu/native/blocking.h"
#include "pteryx/gpu/testing/compute.h"
#include "pteryx/gpu/testing/faults.h"

namespace pteryx::gpu {
namespace {

// More than all of that memory holds at once, and no whole number of words.
std::vector<std::byte> many_bytes() {
  std::vector<std::byte> bytes((70 << 20) + 5);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 2654435761U >> 7);
  return bytes;
}

// Has to be read.
class ReadSource final : public Source {
 public:
  explicit ReadSource(Bytes bytes) : Source("read"), memory_("read", bytes) {}
  uint64_t size() const override { return memory_.size(); }
  Result<bool> read(uint64_t offset, MutableBytes out) const override {
    return memory_.read(offset, out);
  }

 private:
  MemorySource memory_;
};

TEST(Upload, BringsEveryByte) {
  const auto device = open_or_die();
  const std::vector<std::byte> bytes = many_bytes();
  const std::vector<SourcePtr> sources = {std::make_shared<MemorySource>("memory", bytes),
                                          std::make_shared<ReadSource>(bytes)};
  const BufferId y = buffer_or_die(*device, {.size = bytes.size() + 16, .label = "y"});
  for (size_t i = 0; i < sources.size(); ++i) {
    const uint64_t from = 3 * i;  // another part each time
    const uint64_t size = bytes.size() - from;
    const std::vector<std::byte> ones(bytes.size() + 3, std::byte{1});
    ASSERT_TRUE(device->write(y, 0, ones).ok());
    ASSERT_TRUE(device->write(y, 4, sources[i], from, size).ok());
    // In its order behind the large one.
    const uint32_t seven = 7;
    const auto now = std::make_shared<MemorySource>("now", std::as_bytes(std::span(&seven, 1)));
    ASSERT_TRUE(device->write(y, 8, now, 0, 4).ok());
    ASSERT_TRUE(settle(*device, y).ok());
    std::vector<std::byte> want((4 + size + 3) / 4 * 4);
    std::memset(want.data(), 1, 4);
    std::memcpy(&want[4], &bytes[from], size);
    std::memcpy(&want[8], &seven, sizeof(seven));
    EXPECT_TRUE(bytes_from(*device, y, 0, want.size()) == want) << sources[i]->name();
  }
  EXPECT_TRUE(device->take_error().ok());
}

// Parts that share memory arrive before whatever comes after them.
TEST(Upload, KeepsTheOrder) {
  const auto device = open_or_die();
  std::vector<uint32_t> words(50'000);
  std::iota(words.begin(), words.end(), 1U);
  const auto source = std::make_shared<MemorySource>("x", std::as_bytes(std::span(words)));
  const uint64_t size = words.size() * 4;
  std::vector<BufferId> buffers;
  for (int i = 0; i < 5; ++i) {
    buffers.push_back(buffer_or_die(*device, {.size = size, .label = "y"}));
    ASSERT_TRUE(device->write(buffers.back(), 0, source, 0, size).ok());
    ASSERT_TRUE(settle(*device, buffers.back()).ok());
  }
  device->destroy(buffers[1]);
  const uint32_t seven = 7;
  ASSERT_TRUE(device->write(buffers[2], 40, std::as_bytes(std::span(&seven, 1))).ok());
  for (const size_t i : {0, 2, 3, 4}) {
    std::vector<uint32_t> want = words;
    if (i == 2) want[10] = seven;
    EXPECT_EQ(values_from<uint32_t>(*device, buffers[i], words.size()), want) << i;
  }
  EXPECT_TRUE(device->take_error().ok());
}

TEST(Upload, EndsWithTheDevice) {
  const std::vector<std::byte> bytes = many_bytes();
  const auto source = std::make_shared<MemorySource>("memory", bytes);
  for (const bool lost : {false, true}) {
    const auto device = open_or_die();
    const BufferId y = buffer_or_die(*device, {.size = bytes.size() + 3, .label = "y"});
    ASSERT_TRUE(device->write(y, 0, source, 0, bytes.size()).ok());
    if (!lost) continue;  // closed with all of it on its way
    lose(*device);
    Status s = device->write(y, 0, source, 0, bytes.size());
    if (s.ok()) s = settle(*device, y);
    EXPECT_EQ(s.code(), Code::kDevice) << s.message();
  }
}

}  // namespace
}  // namespace pteryx::gpu
