// Chooses between few and many rows of x.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/product.h"

#include <algorithm>

#include "pteryx/base/checked.h"
#include "pteryx/cpu/product_parts.h"

namespace pteryx::cpu {
namespace {

size_t row_bytes(const Weight& weight, size_t m, Precision precision) {
  return m <= kFewRows ? few_rows_bytes(weight, precision) : many_rows_bytes(weight, precision);
}

}  // namespace

size_t prepared_bytes(const Weight& weight, size_t m, Precision precision) {
  return saturating_mul(m, row_bytes(weight, m, precision));
}

size_t most_prepared_bytes(const Weight& weight, size_t m, Precision precision) {
  return std::max(prepared_bytes(weight, m, precision),
                  prepared_bytes(weight, std::min(m, kFewRows), precision));
}

void prepare(const Weight& weight, size_t m, Precision precision, const float* x, size_t x_row,
             size_t first, size_t last, void* prepared) {
  const size_t bytes = row_bytes(weight, m, precision);
  if (bytes == 0) return;
  for (size_t row = first; row < last; ++row) {
    void* to = static_cast<uint8_t*>(prepared) + row * bytes;
    if (m <= kFewRows) {
      prepare_few(weight, precision, x + row * x_row, to);
    } else {
      prepare_many(weight, x + row * x_row, to);
    }
  }
}

size_t scratch_bytes(const Weight& weight, size_t m, Precision) {
  return std::max(few_rows_scratch(weight), m <= kFewRows ? 0 : many_rows_scratch());
}

void multiply(const Weight& weight, size_t m, Precision precision, const float* x, size_t x_row,
              const void* prepared, size_t n_begin, size_t n_end, float* y, size_t y_row,
              void* scratch) {
  const Product p{weight, m, x, x_row, prepared, n_begin, n_end, y, y_row, scratch};
  if (m <= kFewRows) return multiply_few(p, precision);
  multiply_many(p, precision);
}

}  // namespace pteryx::cpu
