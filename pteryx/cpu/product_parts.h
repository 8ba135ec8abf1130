// The two ways of a product: few rows of x, and many. Internal to product.cpp.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pteryx/cpu/product.h"

namespace pteryx::cpu {

// All there is to know for one range of n.
struct Product {
  const Weight& weight;
  size_t m;
  const float* x;
  size_t x_row;
  const void* prepared;
  size_t n_begin;
  size_t n_end;
  float* y;
  size_t y_row;
  void* scratch;
};

inline constexpr size_t kBlock = 32;      // values of x that share a scale
inline constexpr size_t kMostChunk = 64;  // rows of weight whose scales few_rows gathers at once
inline constexpr size_t kManyRows = 256;  // that many_rows takes at once

inline bool is_nibbles(WeightKind kind) {
  return kind == WeightKind::kLowFirst || kind == WeightKind::kHighFirst;
}
inline bool has_codes(WeightKind kind) { return is_nibbles(kind) || kind == WeightKind::kBytes; }
inline bool has_minimums(const Weight& weight) {
  return weight.minimums != nullptr || weight.half_minimums != nullptr;
}
inline size_t blocks_of(size_t k) { return (k + kBlock - 1) / kBlock; }
inline size_t round_up(size_t value, size_t to) { return (value + to - 1) / to * to; }

// 32 values or fewer, rounded to 15 bits and a scale. The largest is 127 * 257, so that values may
// be taken apart into two signed bytes.
inline constexpr float kMostRounded = 32639.0F;
struct Rounded {
  alignas(64) int16_t values[kBlock];
  float scale;
};

size_t few_rows_bytes(const Weight& weight, Precision precision);  // prepared, for each row
size_t few_rows_scratch(const Weight& weight);
void prepare_few(const Weight& weight, Precision precision, const float* x, void* prepared_row);
void multiply_few(const Product& p, Precision precision);

size_t many_rows_bytes(const Weight& weight, Precision precision);
size_t many_rows_scratch();
void prepare_many(const Weight& weight, const float* x, void* prepared_row);
void multiply_many(const Product& p, Precision precision);

}  // namespace pteryx::cpu
