// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/dtype.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string_view>

#include <gtest/gtest.h>

namespace pteryx {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

constexpr DType kAll[] = {DType::kBool, DType::kU8,  DType::kI8,   DType::kI16, DType::kI32,
                          DType::kI64,  DType::kF16, DType::kBF16, DType::kF32, DType::kF64,
                          DType::kU16,  DType::kU32, DType::kU64};

// The value of a half by its definition, in exact arithmetic.
double half_value(uint16_t h) {
  const int exponent = (h >> 10) & 0x1F;
  const int mantissa = h & 0x3FF;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (h & 0x8000) != 0 ? -magnitude : magnitude;
}
bool is_nan(uint16_t h) { return (h & 0x7C00) == 0x7C00 && (h & 0x3FF) != 0; }
bool is_inf(uint16_t h) { return (h & 0x7FFF) == 0x7C00; }

TEST(DType, NamesAreDistinctAndRoundTrip) {
  std::set<std::string_view> names;
  for (const DType t : kAll) {
    EXPECT_TRUE(names.insert(name(t)).second) << name(t);
    EXPECT_EQ(dtype_from_numpy_name(numpy_name(t)), t);
    EXPECT_GT(size_bytes(t), 0U);
  }
  EXPECT_EQ(dtype_from_numpy_name("complex64"), std::nullopt);
  EXPECT_EQ(name(DType::kF16), "f16");
  EXPECT_EQ(numpy_name(DType::kI64), "int64");
}

TEST(DType, ScalarTypesOfTheFile) {
  EXPECT_EQ(dtype_from_scalar_type(0), DType::kU8);
  EXPECT_EQ(dtype_from_scalar_type(4), DType::kI64);
  EXPECT_EQ(dtype_from_scalar_type(6), DType::kF32);
  EXPECT_EQ(dtype_from_scalar_type(11), DType::kBool);
  EXPECT_EQ(dtype_from_scalar_type(15), DType::kBF16);
  EXPECT_EQ(dtype_from_scalar_type(29), DType::kU64);
  for (const int64_t unknown : {-1, 8, 9, 10, 12, 13, 14, 16, 17, 22, 23, 26, 30, 127}) {
    EXPECT_EQ(dtype_from_scalar_type(unknown), std::nullopt) << unknown;
  }
}

TEST(Half, AllReadByDefinition) {
  for (uint32_t i = 0; i < 65536; ++i) {
    const auto h = static_cast<uint16_t>(i);
    const float f = half_to_float(h);
    ASSERT_EQ(std::signbit(f), (h & 0x8000) != 0) << i;
    if (is_nan(h)) {
      ASSERT_TRUE(std::isnan(f)) << i;
    } else if (is_inf(h)) {
      ASSERT_TRUE(std::isinf(f)) << i;
    } else {
      ASSERT_EQ(static_cast<double>(f), half_value(h)) << i;
    }
  }
}

TEST(Half, AllRoundTrip) {
  for (uint32_t i = 0; i < 65536; ++i) {
    const auto h = static_cast<uint16_t>(i);
    const uint16_t back = float_to_half(half_to_float(h));
    if (is_nan(h)) {
      ASSERT_TRUE(is_nan(back)) << i;
    } else {
      ASSERT_EQ(back, h);
    }
  }
}

// Between every two neighbours: the middle goes to the even one, anything off the middle to the
// nearer.
TEST(Half, RoundsToNearestTiesToEven) {
  for (uint32_t i = 0; i < 0x7BFF; ++i) {
    const auto low = static_cast<uint16_t>(i);
    const auto high = static_cast<uint16_t>(i + 1);
    const double middle = (half_value(low) + half_value(high)) / 2;
    const uint16_t even = (i & 1) == 0 ? low : high;
    ASSERT_EQ(double_to_half(middle), even) << i;
    ASSERT_EQ(double_to_half(std::nextafter(middle, 0.0)), low) << i;
    ASSERT_EQ(double_to_half(std::nextafter(middle, 1e9)), high) << i;
    ASSERT_EQ(double_to_half(-middle), even | 0x8000) << i;
    ASSERT_EQ(float_to_half(static_cast<float>(middle)), even) << i;  // exact in f32
  }
}

TEST(Half, OverflowAndSpecials) {
  EXPECT_EQ(double_to_half(65504.0), 0x7BFF);
  EXPECT_EQ(double_to_half(65519.999), 0x7BFF);
  EXPECT_EQ(double_to_half(65520.0), 0x7C00);
  EXPECT_EQ(double_to_half(-1e300), 0xFC00);
  EXPECT_EQ(float_to_half(kInf), 0x7C00);
  EXPECT_EQ(float_to_half(-kInf), 0xFC00);
  EXPECT_TRUE(is_nan(float_to_half(kNan)));
  EXPECT_EQ(float_to_half(0.0F), 0);
  EXPECT_EQ(float_to_half(-0.0F), 0x8000);
  EXPECT_EQ(double_to_half(std::ldexp(1.0, -25)), 0);  // half of the smallest: to even, zero
  EXPECT_EQ(double_to_half(std::ldexp(1.0001, -25)), 1);
  EXPECT_EQ(double_to_half(-5e-324), 0x8000);
}

TEST(BFloat16, AllRoundTrip) {
  for (uint32_t i = 0; i < 65536; ++i) {
    const auto b = static_cast<uint16_t>(i);
    const float f = bfloat16_to_float(b);
    if (std::isnan(f)) {
      ASSERT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(f)))) << i;
    } else {
      ASSERT_EQ(float_to_bfloat16(f), b);
    }
  }
}

TEST(BFloat16, RoundsToNearestTiesToEven) {
  EXPECT_EQ(float_to_bfloat16(std::bit_cast<float>(0x3F808000U)), 0x3F80);  // tie, even below
  EXPECT_EQ(float_to_bfloat16(std::bit_cast<float>(0x3F818000U)), 0x3F82);  // tie, even above
  EXPECT_EQ(float_to_bfloat16(std::bit_cast<float>(0x3F808001U)), 0x3F81);
  EXPECT_EQ(float_to_bfloat16(std::bit_cast<float>(0x3F817FFFU)), 0x3F81);
  EXPECT_EQ(float_to_bfloat16(std::bit_cast<float>(0x7F7FFFFFU)), 0x7F80);  // rounds to infinity
  EXPECT_EQ(float_to_bfloat16(kInf), 0x7F80);
  EXPECT_EQ(float_to_bfloat16(-kInf), 0xFF80);
  EXPECT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(std::bit_cast<float>(0x7F800001U)))));
}

}  // namespace
}  // namespace pteryx
