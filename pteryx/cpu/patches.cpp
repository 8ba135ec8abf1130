// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pteryx/cpu/patches.cpp"
#include <algorithm>
#include <cstring>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "pteryx/cpu/patches.h"
#include "pteryx/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pteryx::cpu {
namespace HWY_NAMESPACE {
namespace {

// Whether any entry of the kernel reads entry i of a padded axis.
bool is_read(const Window& w, size_t axis, size_t i) { return i % w.stride[axis] < w.reach(axis); }

HWY_INLINE void copy_row(const float* HWY_RESTRICT x, size_t count, float* HWY_RESTRICT to) {
  const Floats d;
  if (count < kLanes) {
    for (size_t i = 0; i < count; ++i) to[i] = x[i];
    return;
  }
  for (size_t i = 0; i + kLanes < count; i += kLanes) hn::StoreU(hn::LoadU(d, x + i), d, to + i);
  hn::StoreU(hn::LoadU(d, x + count - kLanes), d, to + count - kLanes);
}

// Every second element to `even`, the others to `odd`; null: they are not wanted.
HWY_INLINE void split_row(const float* HWY_RESTRICT x, size_t count, float* HWY_RESTRICT even,
                          float* HWY_RESTRICT odd) {
  const Floats d;
  size_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    const auto a = hn::LoadU(d, x + i);
    const auto b = hn::LoadU(d, x + i + kLanes);
    if (even != nullptr) hn::StoreU(hn::ConcatEven(d, b, a), d, even + i / 2);
    if (odd != nullptr) hn::StoreU(hn::ConcatOdd(d, b, a), d, odd + i / 2);
  }
  for (; i < count; ++i) {
    float* const to = i % 2 == 0 ? even : odd;
    if (to != nullptr) to[i / 2] = x[i];
  }
}

HWY_INLINE void fill_row(const Window& w, const float* x, float* to) {
  const size_t left = w.padding[2];
  const size_t stride = w.stride[2];
  if (stride == 1) return copy_row(x, w.in[2], to + left);
  if (stride == 2) {
    const auto phase = [&](size_t at) {
      return at % 2 < w.phases() ? to + at % 2 * w.phase() + at / 2 : nullptr;
    };
    return split_row(x, w.in[2], phase(left), phase(left + 1));
  }
  for (size_t p = 0; p < w.phases(); ++p) {
    // The first entry of the phase that lies inside: left <= i * stride + p.
    size_t i = left > p ? (left - p + stride - 1) / stride : 0;
    for (size_t at = i * stride + p - left; at < w.in[2]; at += stride, ++i)
      to[p * w.phase() + i] = x[at];
  }
}

void fill(const Window& w, const float* x, float* padded) {
  for (size_t d = 0; d < w.in[0]; ++d) {
    for (size_t h = 0; h < w.in[1]; ++h, x += w.in[2]) {
      const size_t to_d = d + w.padding[0];
      const size_t to_h = h + w.padding[1];
      if (is_read(w, 0, to_d) && is_read(w, 1, to_h))
        fill_row(w, x, padded + (to_d * w.padded(1) + to_h) * w.row());
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pteryx::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pteryx::cpu {
HWY_EXPORT(fill);

size_t Window::start_of(size_t tap) const {
  const size_t w = tap % kernel[2] * dilation[2];
  const size_t h = tap / kernel[2] % kernel[1] * dilation[1];
  const size_t d = tap / kernel[2] / kernel[1] * dilation[0];
  return (d * padded(1) + h) * row() + w % stride[2] * phase() + w / stride[2];
}

void fill_plane(const Window& w, const float* x, float* padded) {
  HWY_DYNAMIC_DISPATCH(fill)(w, x, padded);
}

void pad_plane(const Window& w, const float* x, float* padded) {
  std::fill(padded, padded + w.plane(), 0.0F);
  fill_plane(w, x, padded);
}
}  // namespace pteryx::cpu
#endif
