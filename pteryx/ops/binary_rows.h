// Rows of the elementwise operators of two operands: how each is spelled, what it computes in WGSL
// and on the host.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace pteryx::ops {

enum class BinaryForm : uint8_t {
  kTensor,
  kTensorAlpha,
  kTensorMode,
  kScalar,
  kScalarAlpha,
  kScalarMode,
  kScalarFirst  // the tensor is still `a` and the scalar `b` below
};

struct BinaryRow {
  std::string_view name;
  std::array<std::string_view, 2> spellings;
  BinaryForm form;
  std::string_view f32;  // WGSL over `a` and `b`, both f32 (both i32 below)
  std::string_view i32;
  double (*host_f)(double, double);
  int64_t (*host_i)(int64_t, int64_t);
};

std::span<const BinaryRow> binary_rows();

// The division that a rounding mode asks for ("", "floor", "trunc"), as the rule of `row`; none for
// another mode.
std::optional<BinaryRow> rounded_division(const BinaryRow& row, std::string_view mode);

// Arithmetic that wraps, as the GPU's and PyTorch's does.
inline int64_t wrap_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

}  // namespace pteryx::ops
