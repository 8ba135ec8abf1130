// What becomes of the sums of a product before they are stored.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace pteryx::cpu {

enum class Activation : uint8_t { kNone, kRelu, kSilu, kGelu, kGeluTanh, kHardswish };

// Element [r, c] of a matrix is data[r * row + c * column].
struct Operand {
  const float* data = nullptr;  // null: there is none
  size_t row = 0;
  size_t column = 0;  // 0 or 1
};

// y = clamp(activation(sum * factor + shift) * scale + residual, low, high). NaN stays NaN.
struct Finish {
  Operand factor;
  Operand shift;
  Activation activation = Activation::kNone;
  Operand scale;
  Operand residual;
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
};

}  // namespace pteryx::cpu
