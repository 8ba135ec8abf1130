// Pooling of planes: the largest element, or the mean, of each position of a window.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

#include "pteryx/cpu/patches.h"

namespace pteryx::cpu {

// `starts` has start_of() of all taps. Planes are padded with zeros for means, and with minus
// infinity for the largest element.
struct Pooling {
  Window window;  // of depth 1
  const size_t* starts = nullptr;
};

// y[h, w] = sum / (rows[h] * columns[w]).
void pool_mean(const Pooling& p, const float* padded, const float* rows, const float* columns,
               float* y);

// Where the largest elements lie in the plane: the first of several, or the last NaN.
struct Places {
  const int32_t* taps = nullptr;     // from the window's begin, for each tap
  const int32_t* rows = nullptr;     // of the windows' begins, in elements
  const int32_t* columns = nullptr;  // of the windows' begins
  // Of the first elements inside, which it is where all are minus infinity.
  const int32_t* inner_rows = nullptr;
  const int32_t* inner_columns = nullptr;
  int32_t* to = nullptr;  // null: they are not wanted
};
// NaN is larger than anything.
void pool_max(const Pooling& p, const float* padded, const Places& places, float* y);

}  // namespace pteryx::cpu
