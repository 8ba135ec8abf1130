// Softmax of rows and of columns, or its logarithm. Each call does a range of them, so that threads
// can share the work; results do not depend on the ranges. Those that are all minus infinity become
// NaN.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

namespace pteryx::cpu {

enum class SoftmaxKind : uint8_t { kPlain, kLog };

// Rows of `width`.
void softmax(SoftmaxKind kind, const float* x, size_t rows, size_t width, float* y);
// Columns `begin` to `end` of [length, columns].
struct Columns {
  size_t length = 0;
  size_t columns = 0;
  size_t begin = 0;
  size_t end = 0;
};
void softmax_columns(SoftmaxKind kind, const Columns& c, const float* x, float* y);

}  // namespace pteryx::cpu
