// How a token is drawn from logits. What each step does is in pteryx/ops/sample/sample.h.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace pteryx {

struct Sampling {
  float temperature = 0;  // 0: greedy
  float top_p = 1;        // 1: all
  float min_p = 0;        // 0: all
  float repetition = 1;   // 1: none
  float presence = 0;
  float frequency = 0;
  uint32_t top_k = 0;  // 0: all
  uint64_t seed = 0;
  uint32_t window = 0;      // positions that the penalties look back; 0: all
  uint32_t vocabulary = 0;  // ids from here on are never drawn; 0: all are
};

}  // namespace pteryx
