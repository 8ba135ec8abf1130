// The cosines and sines of rotary position embeddings. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include "pteryx/convert/model.h"

namespace pteryx::convert {

// [rows, width]: width is half a head for pairs; for halves a whole head, the second half of a row
// repeating the first.
struct RopeTable {
  int64_t width = 0;
  std::vector<float> cos, sin;
};
RopeTable rope_table(const ModelShape& shape, int64_t rows);

}  // namespace pteryx::convert
