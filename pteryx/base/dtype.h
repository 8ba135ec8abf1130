// Element types and their sizes, names and conversions.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace pteryx {

enum class DType : uint8_t {
  kBool,
  kU8,
  kI8,
  kI16,
  kI32,
  kI64,
  kF16,
  kBF16,
  kF32,
  kF64,
  kU16,
  kU32,
  kU64
};

constexpr size_t size_bytes(DType t) {
  switch (t) {
    case DType::kBool:
    case DType::kU8:
    case DType::kI8: return 1;
    case DType::kI16:
    case DType::kU16:
    case DType::kF16:
    case DType::kBF16: return 2;
    case DType::kI32:
    case DType::kU32:
    case DType::kF32: return 4;
    case DType::kI64:
    case DType::kU64:
    case DType::kF64: return 8;
  }
  return 0;
}

constexpr bool is_float(DType t) {
  return t == DType::kF16 || t == DType::kBF16 || t == DType::kF32 || t == DType::kF64;
}

// "f32", "i64", "bool": the names used in messages and tables.
std::string_view name(DType t);
std::optional<DType> dtype_from_name(std::string_view name);
// "float32", "int64", "bool": the names of numpy and of manifests.
std::string_view numpy_name(DType t);
std::optional<DType> dtype_from_numpy_name(std::string_view name);
// ExecuTorch's ScalarType numbering; nullopt for types Pteryx does not know (complex, quantised,
// bits, float8).
std::optional<DType> dtype_from_scalar_type(int64_t scalar_type);

// IEEE half and bfloat16, round to nearest even.
float half_to_float(uint16_t h);
uint16_t float_to_half(float f);
uint16_t double_to_half(double d);
float bfloat16_to_float(uint16_t b);
uint16_t float_to_bfloat16(float f);

}  // namespace pteryx
