// Convolutions of every channel by itself: some vectors of results at a time stay in registers
// while all entries of the kernel are added.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pteryx/cpu/depthwise.cpp"
#include <algorithm>

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

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pteryx::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pteryx::cpu {
HWY_EXPORT(convolve_strips);

void convolve_plane(const Window& w, const size_t* starts, const float* padded, const float* kernel,
                    const Finish& finish, size_t channel, float* y) {
  HWY_DYNAMIC_DISPATCH(convolve_strips)(w, starts, padded, kernel, finish, channel, y);
}
}  // namespace pteryx::cpu
#endif
