// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/patches.h"

#include <algorithm>
#include <cstring>

namespace pteryx::cpu {
namespace {

// Whether any entry of the kernel reads entry i of a padded axis.
bool is_read(const Window& w, size_t axis, size_t i) { return i % w.stride[axis] < w.reach(axis); }

void pad_row(const Window& w, const float* x, float* to) {
  const size_t left = w.padding[2];
  const size_t in = w.in[2];
  if (w.stride[2] == 1) {
    std::memset(to, 0, left * sizeof(float));
    std::memcpy(to + left, x, in * sizeof(float));
    std::memset(to + left + in, 0, left * sizeof(float));
    return;
  }
  for (size_t p = 0; p < w.phases(); ++p) {
    float* const phase = to + p * w.phase();
    const size_t stride = w.stride[2];
    // Entries i of the phase that lie inside: left <= i * stride + p < left + in.
    const size_t begin = std::min(left > p ? (left - p + stride - 1) / stride : 0, w.phase());
    const size_t end =
        std::clamp(left + in > p ? (left + in - p + stride - 1) / stride : 0, begin, w.phase());
    std::fill(phase, phase + begin, 0.0F);
    const float* from = x + begin * stride + p - left;
    for (size_t i = begin; i < end; ++i, from += stride) phase[i] = *from;
    std::fill(phase + end, phase + w.phase(), 0.0F);
  }
}

}  // namespace

size_t Window::start_of(size_t tap) const {
  const size_t w = tap % kernel[2] * dilation[2];
  const size_t h = tap / kernel[2] % kernel[1] * dilation[1];
  const size_t d = tap / kernel[2] / kernel[1] * dilation[0];
  return (d * padded(1) + h) * row() + w % stride[2] * phase() + w / stride[2];
}

void pad_plane(const Window& w, const float* x, float* to) {
  for (size_t d = 0; d < w.padded(0); ++d) {
    for (size_t h = 0; h < w.padded(1); ++h, to += w.row()) {
      const bool inside = d >= w.padding[0] && d < w.padding[0] + w.in[0] && h >= w.padding[1] &&
                          h < w.padding[1] + w.in[1] && is_read(w, 0, d) && is_read(w, 1, h);
      if (inside) {
        pad_row(w, x + ((d - w.padding[0]) * w.in[1] + h - w.padding[1]) * w.in[2], to);
      } else {
        std::memset(to, 0, w.row() * sizeof(float));
      }
    }
  }
}

}  // namespace pteryx::cpu
