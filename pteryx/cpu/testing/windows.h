// Windows over planes that tests of patches, depthwise convolution and pooling share, and how plain
// loops see them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "pteryx/cpu/patches.h"

namespace pteryx::cpu::testing {

// Widths around vectors of every set of instructions; strides, dilation, padding; 3 axes.
inline std::vector<Window> some_windows() {
  return {
      {.in = {1, 1, 1}, .out = {1, 1, 1}},
      {.in = {1, 7, 7}, .out = {1, 7, 7}, .kernel = {1, 3, 3}, .padding = {0, 1, 1}},
      {.in = {1, 14, 14},
       .out = {1, 7, 7},
       .kernel = {1, 3, 3},
       .stride = {1, 2, 2},
       .padding = {0, 1, 1}},
      {.in = {1, 5, 67}, .out = {1, 3, 34}, .kernel = {1, 1, 1}, .stride = {1, 2, 2}},
      {.in = {1, 6, 40}, .out = {1, 6, 40}, .kernel = {1, 5, 5}, .padding = {0, 2, 2}},
      {.in = {1, 9, 70},
       .out = {1, 5, 35},
       .kernel = {1, 2, 2},
       .stride = {1, 2, 2},
       .padding = {0, 1, 0}},
      {.in = {1, 9, 35},
       .out = {1, 3, 12},
       .kernel = {1, 2, 4},
       .stride = {1, 3, 3},
       .padding = {0, 0, 1}},
      {.in = {1, 4, 33},
       .out = {1, 2, 17},
       .kernel = {1, 3, 3},
       .stride = {1, 2, 2},
       .padding = {0, 2, 2},
       .dilation = {1, 2, 2}},
      {.in = {3, 4, 18}, .out = {2, 3, 16}, .kernel = {2, 2, 3}},
      {.in = {1, 2, 3}, .out = {1, 1, 1}, .kernel = {1, 2, 3}, .stride = {1, 9, 9}},
  };
}

// Where in the plane the window of `position` has entry `tap`; none: in the padding.
inline std::optional<size_t> place_of(const Window& w, size_t position, size_t tap) {
  const size_t out[] = {position / w.out[2] / w.out[1], position / w.out[2] % w.out[1],
                        position % w.out[2]};
  const size_t entry[] = {tap / w.kernel[2] / w.kernel[1], tap / w.kernel[2] % w.kernel[1],
                          tap % w.kernel[2]};
  size_t at = 0;
  for (size_t axis = 0; axis < 3; ++axis) {
    const size_t i = out[axis] * w.stride[axis] + entry[axis] * w.dilation[axis];
    if (i < w.padding[axis] || i >= w.padding[axis] + w.in[axis]) return {};
    at = at * w.in[axis] + i - w.padding[axis];
  }
  return at;
}

inline std::vector<size_t> starts_of(const Window& w) {
  std::vector<size_t> starts(w.taps());
  for (size_t t = 0; t < w.taps(); ++t) starts[t] = w.start_of(t);
  return starts;
}

inline size_t elements_of(const Window& w) { return w.in[0] * w.in[1] * w.in[2]; }

}  // namespace pteryx::cpu::testing
