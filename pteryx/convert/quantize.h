// Rows of floats to codes and scales. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>

namespace pteryx::convert {

// Codes in [-127, 127] and the scale of the row: its largest magnitude becomes 127.
float quantize_q8(std::span<const float> row, std::span<int8_t> codes);

// Codes in [-8, 7] and the scale of a group, which may be negative. Tries scales around the one
// that makes the largest magnitude -8 and keeps the one with the least squared error.
float quantize_q4(std::span<const float> group, std::span<int8_t> codes);

// How far codes * scale is from what it stands for; sums over rows.
struct Error {
  double squared_error = 0;
  double squared = 0;

  void add(std::span<const float> row, std::span<const int8_t> codes, float scale);
  void add(float value, float stored);
  double relative() const;  // RMS of the difference over RMS of the values
};

}  // namespace pteryx::convert
