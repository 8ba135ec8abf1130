// Element type names and half-precision conversions. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace pteryx {
namespace {

struct Names {
  std::string_view shorthand;
  std::string_view numpy;
};
// In the order of DType.
constexpr std::array<Names, 13> kNames = {{{"bool", "bool"},
                                           {"u8", "uint8"},
                                           {"i8", "int8"},
                                           {"i16", "int16"},
                                           {"i32", "int32"},
                                           {"i64", "int64"},
                                           {"f16", "float16"},
                                           {"bf16", "bfloat16"},
                                           {"f32", "float32"},
                                           {"f64", "float64"},
                                           {"u16", "uint16"},
                                           {"u32", "uint32"},
                                           {"u64", "uint64"}}};

std::optional<DType> find(std::string_view text, std::string_view Names::* kind) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i].*kind == text) return static_cast<DType>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view name(DType t) { return kNames[static_cast<size_t>(t)].shorthand; }
std::string_view numpy_name(DType t) { return kNames[static_cast<size_t>(t)].numpy; }

std::optional<DType> dtype_from_name(std::string_view text) {
  return find(text, &Names::shorthand);
}
std::optional<DType> dtype_from_numpy_name(std::string_view text) {
  return find(text, &Names::numpy);
}

std::optional<DType> dtype_from_scalar_type(int64_t scalar_type) {
  switch (scalar_type) {
    case 0: return DType::kU8;
    case 1: return DType::kI8;
    case 2: return DType::kI16;
    case 3: return DType::kI32;
    case 4: return DType::kI64;
    case 5: return DType::kF16;
    case 6: return DType::kF32;
    case 7: return DType::kF64;
    case 11: return DType::kBool;
    case 15: return DType::kBF16;
    case 27: return DType::kU16;
    case 28: return DType::kU32;
    case 29: return DType::kU64;
    default: return std::nullopt;
  }
}

float half_to_float(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000U) << 16;
  const uint32_t exponent = (h >> 10) & 0x1FU;
  const uint32_t mantissa = h & 0x3FFU;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000U | (mantissa << 13));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

uint16_t double_to_half(double d) {
  const auto sign = static_cast<uint16_t>(std::signbit(d) ? 0x8000U : 0U);
  if (std::isnan(d)) return static_cast<uint16_t>(sign | 0x7E00U);
  const double a = std::fabs(d);
  if (a >= 65520.0) return static_cast<uint16_t>(sign | 0x7C00U);
  int exponent = 0;
  std::frexp(a, &exponent);  // a = m * 2^exponent, m in [0.5, 1)
  const int ulp_exponent = a == 0.0 ? -24 : std::max(exponent - 11, -24);
  const double scaled =
      std::nearbyint(std::ldexp(a, -ulp_exponent));  // exact power of two, ties to even
  const auto units = static_cast<uint32_t>(scaled);
  if (ulp_exponent == -24)
    return static_cast<uint16_t>(sign | units);  // subnormal, or the first normal binade
  // units in [1024, 2048]; 2048 carries into the exponent by itself.
  return static_cast<uint16_t>(sign | (((static_cast<uint32_t>(ulp_exponent + 24)) << 10) + units));
}

uint16_t float_to_half(float f) { return double_to_half(static_cast<double>(f)); }

float bfloat16_to_float(uint16_t b) { return std::bit_cast<float>(static_cast<uint32_t>(b) << 16); }

uint16_t float_to_bfloat16(float f) {
  const auto bits = std::bit_cast<uint32_t>(f);
  if (std::isnan(f)) return static_cast<uint16_t>((bits >> 16) | 0x40U);
  return static_cast<uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

}  // namespace pteryx
