// Convolutions of every channel by itself: some vectors of results at a time stay in registers
// while all entries of the kernel are added.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pteryx/cpu/depthwise.cpp"
#include <algorithm>
#include <cstddef>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "pteryx/cpu/depthwise.h"
#include "pteryx/cpu/functions-inl.h"
#include "pteryx/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pteryx::cpu {
namespace HWY_NAMESPACE {
namespace {

constexpr size_t kStrips = 4;  // that are computed at once
static_assert(kLanes <= kSpare);

// A vector of results that lie side by side, or fewer.
struct Strip {
  size_t from;  // in the padded plane
  size_t to;
  size_t count;
};

struct Plane {
  const size_t* starts;
  size_t taps;
  const float* x;
  const float* kernel;
  const Finish& finish;
  size_t channel;
  float* y;
};

HWY_INLINE void convolve(const Plane& p, const Strip* strips, size_t count) {
  const Floats d;
  V sum[kStrips];
  const float* from[kStrips];
  PTERYX_UNROLL for (size_t s = 0; s < kStrips; ++s) {
    sum[s] = hn::Zero(d);
    from[s] = p.x + strips[s].from;
  }
  for (size_t t = 0; t < p.taps; ++t) {
    const V weight = hn::Set(d, p.kernel[t]);
    const size_t at = p.starts[t];
    PTERYX_UNROLL for (size_t s = 0; s < kStrips; ++s) sum[s] =
        hn::MulAdd(weight, hn::LoadU(d, from[s] + at), sum[s]);
  }
  PTERYX_UNROLL for (size_t s = 0; s < kStrips; ++s) {
    if (s >= count) break;
    const Strip& strip = strips[s];
    const V v = finished(p.finish, sum[s], p.channel, strip.to, strip.count);
    if (strip.count == kLanes) {
      hn::StoreU(v, d, p.y + strip.to);
    } else {
      store_part(v, d, p.y + strip.to, strip.count);
    }
  }
}

void convolve_strips(const Window& w, const size_t* starts, const float* padded,
                     const float* kernel, const Finish& finish, size_t channel, float* y) {
  const Plane plane{starts, w.taps(), padded, kernel, finish, channel, y};
  Strip strips[kStrips] = {};
  size_t count = 0;
  size_t to = 0;
  for (size_t od = 0; od < w.out[0]; ++od) {
    for (size_t oh = 0; oh < w.out[1]; ++oh) {
      const size_t from = od * w.plane_step() + oh * w.row_step();
      for (size_t ow = 0; ow < w.out[2]; ow += kLanes) {
        const size_t length = std::min(kLanes, w.out[2] - ow);
        strips[count++] = {from + ow, to, length};
        to += length;
        if (count < kStrips) continue;
        convolve(plane, strips, count);
        count = 0;
      }
    }
  }
  if (count > 0) convolve(plane, strips, count);
}

#if HWY_MEM_OPS_MIGHT_FAULT
bool has_direct(const Window& /*w*/) { return false; }
void convolve_direct(const Window& /*w*/, const float* /*x*/, const float* /*kernel*/,
                     const Finish& /*finish*/, size_t /*channel*/, float* /*y*/) {}
#else
bool has_direct(const Window& w) {
  const size_t k = w.kernel[2];
  const bool known = k == 3 || k == 5 || k == 7;
  return known && w.kernel[1] == k && w.kernel[0] == 1 && w.in[0] == 1 && w.out[0] == 1 &&
         w.padding[0] == 0 && w.stride[1] == w.stride[2] && w.stride[2] <= 2 &&
         w.dilation[1] == 1 && w.dilation[2] == 1;
}

// A vector of results of each of some rows, which share what they read.
struct Tile {
  const Window& window;
  const float* x;
  const float* kernel;
  std::ptrdiff_t top;   // row of the input that the first result begins at
  std::ptrdiff_t left;  // column
};

using Mask = hn::Mask<Floats>;
// Lanes of a load from column `at` on that lie inside.
HWY_INLINE Mask lanes_inside(const Window& w, std::ptrdiff_t at) {
  const Floats d;
  const auto lanes = static_cast<std::ptrdiff_t>(kLanes);
  const auto clamped = [&](std::ptrdiff_t v) {
    return static_cast<size_t>(std::clamp<std::ptrdiff_t>(v, 0, lanes));
  };
  const auto width = static_cast<std::ptrdiff_t>(w.in[2]);
  return hn::AndNot(hn::FirstN(d, clamped(-at)), hn::FirstN(d, clamped(width - at)));
}

// Vectors that the entries of a row of the kernel are multiplied with.
template <size_t kK, size_t kS, bool kInside>
struct RowLoader {
  Mask masks[kK * kS];

  explicit RowLoader(const Tile& t) {
    if constexpr (!kInside) {
      for (size_t i = 0; i < kK * kS; ++i)
        masks[i] =
            lanes_inside(t.window, t.left + static_cast<std::ptrdiff_t>(i / kS + i % kS * kLanes));
    }
  }
  HWY_INLINE V load(const float* from, size_t entry, size_t part) const {
    const Floats d;
    if constexpr (kInside) return hn::LoadU(d, from + entry + part * kLanes);
    return hn::MaskedLoad(masks[entry * kS + part], d, from + entry + part * kLanes);
  }
  HWY_INLINE V operator()(const float* from, size_t entry) const {
    if constexpr (kS == 1) return load(from, entry, 0);
    return hn::ConcatEven(Floats(), load(from, entry, 1), load(from, entry, 0));
  }
};

template <size_t kK, size_t kS, size_t kOut, bool kInside>
HWY_INLINE void add_tile(const Tile& t, V* sums) {
  const Floats d;
  const RowLoader<kK, kS, kInside> loader(t);
  V sum[kOut];
  PTERYX_UNROLL for (size_t r = 0; r < kOut; ++r) sum[r] = hn::Zero(d);
  PTERYX_UNROLL for (size_t i = 0; i < (kOut - 1) * kS + kK; ++i) {
    const std::ptrdiff_t row = t.top + static_cast<std::ptrdiff_t>(i);
    if (row < 0 || row >= static_cast<std::ptrdiff_t>(t.window.in[1])) continue;
    const float* const from = t.x + row * static_cast<std::ptrdiff_t>(t.window.in[2]) + t.left;
    PTERYX_UNROLL for (size_t e = 0; e < kK; ++e) {
      const V v = loader(from, e);
      PTERYX_UNROLL for (size_t r = 0; r < kOut; ++r) {
        if (i < r * kS || i - r * kS >= kK) continue;
        sum[r] = hn::MulAdd(hn::Set(d, t.kernel[(i - r * kS) * kK + e]), v, sum[r]);
      }
    }
  }
  PTERYX_UNROLL for (size_t r = 0; r < kOut; ++r) sums[r] = sum[r];
}

// kOut rows of results at a time; the last ones overlap where they are not a multiple.
template <size_t kK, size_t kS, size_t kOut>
void convolve_rows(const Window& w, const float* x, const float* kernel, const Finish& finish,
                   size_t channel, float* y) {
  const Floats d;
  // Columns that loads of a vector reach over.
  constexpr std::ptrdiff_t kReach = kK - 1 + kS * kLanes;
  for (size_t from = 0; from < w.out[1]; from += kOut) {
    const size_t oh = std::min(from, w.out[1] - kOut);
    for (size_t ow = 0; ow < w.out[2]; ow += kLanes) {
      const Tile t{
          w, x, kernel,
          static_cast<std::ptrdiff_t>(oh * kS) - static_cast<std::ptrdiff_t>(w.padding[1]),
          static_cast<std::ptrdiff_t>(ow * kS) - static_cast<std::ptrdiff_t>(w.padding[2])};
      V sums[kOut];
      if (t.left >= 0 && t.left + kReach <= static_cast<std::ptrdiff_t>(w.in[2])) {
        add_tile<kK, kS, kOut, true>(t, sums);
      } else {
        add_tile<kK, kS, kOut, false>(t, sums);
      }
      const size_t count = std::min(kLanes, w.out[2] - ow);
      PTERYX_UNROLL for (size_t r = 0; r < kOut; ++r) {
        const size_t to = (oh + r) * w.out[2] + ow;
        const V v = finished(finish, sums[r], channel, to, count);
        if (count == kLanes) {
          hn::StoreU(v, d, y + to);
        } else {
          store_part(v, d, y + to, count);
        }
      }
    }
  }
}

template <size_t kK, size_t kS>
void convolve_square(const Window& w, const float* x, const float* kernel, const Finish& finish,
                     size_t channel, float* y) {
  if (w.out[1] < 4) return convolve_rows<kK, kS, 1>(w, x, kernel, finish, channel, y);
  convolve_rows<kK, kS, 4>(w, x, kernel, finish, channel, y);
}

void convolve_direct(const Window& w, const float* x, const float* kernel, const Finish& finish,
                     size_t channel, float* y) {
  const auto by = [&](auto one, auto two) {
    (w.stride[2] == 1 ? one : two)(w, x, kernel, finish, channel, y);
  };
  if (w.kernel[2] == 3) return by(convolve_square<3, 1>, convolve_square<3, 2>);
  if (w.kernel[2] == 5) return by(convolve_square<5, 1>, convolve_square<5, 2>);
  by(convolve_square<7, 1>, convolve_square<7, 2>);
}
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pteryx::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pteryx::cpu {
HWY_EXPORT(convolve_strips);
HWY_EXPORT(has_direct);
HWY_EXPORT(convolve_direct);

void convolve_plane(const Window& w, const size_t* starts, const float* padded, const float* kernel,
                    const Finish& finish, size_t channel, float* y) {
  HWY_DYNAMIC_DISPATCH(convolve_strips)(w, starts, padded, kernel, finish, channel, y);
}
bool convolves_directly(const Window& w) { return HWY_DYNAMIC_DISPATCH(has_direct)(w); }
void convolve_directly(const Window& w, const float* x, const float* kernel, const Finish& finish,
                       size_t channel, float* y) {
  HWY_DYNAMIC_DISPATCH(convolve_direct)(w, x, kernel, finish, channel, y);
}
}  // namespace pteryx::cpu
#endif
