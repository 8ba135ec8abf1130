// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/bytes.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace pteryx {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

TEST(Bytes, ReadsLittleEndianAtAnyAddress) {
  const std::array<uint8_t, 9> data = {0xFF, 1, 2, 3, 4, 5, 6, 7, 8};
  const Bytes bytes = std::as_bytes(std::span(data));
  EXPECT_EQ(read_at<uint8_t>(bytes, 0), 0xFF);
  EXPECT_EQ(read_at<uint32_t>(bytes, 1), 0x04030201U);
  EXPECT_EQ(read_at<uint64_t>(bytes, 1), 0x0807060504030201U);
  EXPECT_EQ(read_at<int8_t>(bytes, 0), -1);
}

TEST(Bytes, ReadsNothingPastTheEnd) {
  const std::array<std::byte, 8> data = {};
  EXPECT_TRUE(read_at<uint32_t>(data, 4).has_value());
  EXPECT_EQ(read_at<uint32_t>(data, 5), std::nullopt);
  EXPECT_EQ(read_at<uint8_t>(data, 8), std::nullopt);
  EXPECT_EQ(read_at<uint32_t>(data, kMax - 1), std::nullopt);
  EXPECT_EQ(read_at<uint8_t>(Bytes(), 0), std::nullopt);
}

TEST(Bytes, SlicesOnlyWhatIsThere) {
  const std::array<std::byte, 8> data = {};
  const Bytes bytes(data);
  EXPECT_EQ(slice(bytes, 2, 6)->size(), 6U);
  EXPECT_EQ(slice(bytes, 2, 6)->data(), data.data() + 2);
  EXPECT_EQ(slice(bytes, 8, 0)->size(), 0U);
  EXPECT_EQ(slice(bytes, 2, 7), std::nullopt);
  EXPECT_EQ(slice(bytes, 9, 0), std::nullopt);
  EXPECT_EQ(slice(bytes, 1, kMax), std::nullopt);
}

TEST(Bytes, OfAValueAreItsMemory) {
  const uint32_t v = 0x04030201;
  const Bytes bytes = bytes_of(v);
  ASSERT_EQ(bytes.size(), 4U);
  EXPECT_EQ(bytes[0], std::byte{1});
  EXPECT_EQ(read_at<uint32_t>(bytes, 0), v);
}

}  // namespace
}  // namespace pteryx
