// Products of rows of x with the rows of a weight as it lies in a file: y[m, n] = sum over k of
// x[m, k] * weight[n, k]. A call computes a range of n, so that threads can share the work; results
// do not depend on the ranges. At f16 precision x is rounded to 15 bits of the largest of every 32,
// where weights have codes: sums of their products are exact in i32.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

#include "pteryx/base/precision.h"

namespace pteryx::cpu {

enum class WeightKind : uint8_t {
  kLowFirst,   // 4 bits offset by 8, two in a byte, even k in the low nibble
  kHighFirst,  // the same with even k in the high nibble
  kBytes,      // 8 bits, signed; one scale for each n
  kF32,
  kF16,
};

struct Weight {
  WeightKind kind = WeightKind::kF32;
  size_t n = 0;
  size_t k = 0;
  const void* data = nullptr;  // [n, k], rows row_bytes apart
  size_t row_bytes = 0;
  const float* scales = nullptr;  // of 4 bits [k / group, scale_row]; of 8 bits [n]
  size_t scale_row = 0;
  size_t group = 0;  // of 4 bits: a multiple of 32, or at least k
  // Of 4 bits, in place of scales: f16, [n / 8, k / group, 8], rows of [k / group, 8] scale_row
  // apart.
  const uint16_t* half_scales = nullptr;
  // Of 4 bits, where set: what code 0 of each group stands for, which is added to all its weights.
  // As scales, or as half_scales where these are set. Rows of x that are not finite make sums that
  // are not, NaN where a plain loop has an infinity.
  const float* minimums = nullptr;
  const uint16_t* half_minimums = nullptr;
};

// Rows of x up to which weights are unpacked in registers, row by row of weight; more of them take
// panels of 64 rows of weight.
inline constexpr size_t kFewRows = 4;

// The rows of x as the kernel for m of them wants them; bytes are 0 where it takes x itself.
// Memory is aligned to 64 bytes here and below.
size_t prepared_bytes(const Weight& weight, size_t m, Precision precision);
// The most of them for m rows or fewer.
size_t most_prepared_bytes(const Weight& weight, size_t m, Precision precision);
// Rows first..last-1 of x [m, k], of which rows are x_row apart. NaN and infinities in 32 values
// that are rounded together make all of them NaN.
void prepare(const Weight& weight, size_t m, Precision precision, const float* x, size_t x_row,
             size_t first, size_t last, void* prepared);

// What a thread needs at most while it multiplies m rows or fewer.
size_t scratch_bytes(const Weight& weight, size_t m, Precision precision);
// y[:, n_begin..n_end-1], rows y_row apart. x is read where prepared_bytes is 0.
void multiply(const Weight& weight, size_t m, Precision precision, const float* x, size_t x_row,
              const void* prepared, size_t n_begin, size_t n_end, float* y, size_t y_row,
              void* scratch);

}  // namespace pteryx::cpu
