// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/codes.h"

#include <vector>

#include <gtest/gtest.h>

#include "pteryx/cpu/testing/each_target.h"

namespace pteryx::cpu {
namespace {

int code_of(CodeKind kind, const std::vector<uint8_t>& bytes, size_t i) {
  if (kind == CodeKind::kUnsigned) return bytes[i];
  if (kind == CodeKind::kSigned) return static_cast<int8_t>(bytes[i]);
  const bool low = (i % 2 == 0) == (kind == CodeKind::kLowFirst);
  return (low ? bytes[i / 2] & 15 : bytes[i / 2] >> 4) - 8;
}

TEST(Codes, AreThoseOfAPlainLoop) {
  std::vector<uint8_t> bytes(300);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 37 + 11);
  for (const CodeKind kind :
       {CodeKind::kLowFirst, CodeKind::kHighFirst, CodeKind::kSigned, CodeKind::kUnsigned}) {
    for (const size_t count : {0UL, 2UL, 30UL, 32UL, 64UL, 128UL, 174UL, 256UL}) {
      testing::for_each_target([&] {
        std::vector<float> y(count + 1, -77.0F);
        decode(kind, bytes.data(), count, 1.5F, 0.25F, y.data());
        for (size_t i = 0; i < count; ++i)
          EXPECT_EQ(y[i], (static_cast<float>(code_of(kind, bytes, i)) - 1.5F) * 0.25F) << i;
        EXPECT_EQ(y[count], -77.0F);
      });
    }
  }
}

}  // namespace
}  // namespace pteryx::cpu
