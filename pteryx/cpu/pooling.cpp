// Pooling of planes: a vector of results that lie side by side goes over all entries of the window.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pteryx/cpu/pooling.cpp"
#include <algorithm>
#include <limits>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "pteryx/cpu/pooling.h"
#include "pteryx/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pteryx::cpu {
namespace HWY_NAMESPACE {
namespace {

using V = hn::Vec<Floats>;
using VI = hn::Vec<Ints>;
static_assert(kLanes <= kSpare);

template <class D>
HWY_INLINE hn::Vec<D> load_some(D d, const hn::TFromD<D>* from, size_t count) {
  return count == kLanes ? hn::LoadU(d, from) : load_part(d, from, count);
}
template <class D>
HWY_INLINE void store_some(hn::Vec<D> v, D d, hn::TFromD<D>* to, size_t count) {
  if (count == kLanes) return hn::StoreU(v, d, to);
  store_part(v, d, to, count);
}

// Calls body(h, w, count, from) for vectors of results.
template <class Body>
HWY_INLINE void for_each_vector(const Window& w, const Body& body) {
  for (size_t h = 0; h < w.out[1]; ++h) {
    for (size_t i = 0; i < w.out[2]; i += kLanes)
      body(h, i, std::min(kLanes, w.out[2] - i), h * w.row_step() + i);
  }
}

void mean(const Pooling& p, const float* padded, const float* rows, const float* columns,
          float* y) {
  const Floats d;
  const size_t taps = p.window.taps();
  for_each_vector(p.window, [&](size_t h, size_t w, size_t count, size_t from) {
    V sum = hn::Zero(d);
    for (size_t t = 0; t < taps; ++t) sum = hn::Add(sum, hn::LoadU(d, padded + from + p.starts[t]));
    const V by = hn::Mul(hn::Set(d, rows[h]), load_some(d, columns + w, count));
    store_some(hn::Div(sum, by), d, y + h * p.window.out[2] + w, count);
  });
}

void largest(const Pooling& p, const float* padded, const Places& places, float* y) {
  const Floats d;
  const Ints di;
  const size_t taps = p.window.taps();
  const V lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  for_each_vector(p.window, [&](size_t h, size_t w, size_t count, size_t from) {
    V best = lowest;
    float* const to = y + h * p.window.out[2] + w;
    const auto beats = [&](V v) { return hn::Or(hn::Gt(v, best), hn::IsNaN(v)); };
    if (places.to == nullptr) {
      for (size_t t = 0; t < taps; ++t) {
        const V v = hn::LoadU(d, padded + from + p.starts[t]);
        best = hn::IfThenElse(beats(v), v, best);
      }
      return store_some(best, d, to, count);
    }
    const VI begin = hn::Add(hn::Set(di, places.rows[h]), load_some(di, places.columns + w, count));
    VI at =
        hn::Add(hn::Set(di, places.inner_rows[h]), load_some(di, places.inner_columns + w, count));
    for (size_t t = 0; t < taps; ++t) {
      const V v = hn::LoadU(d, padded + from + p.starts[t]);
      const auto better = beats(v);
      best = hn::IfThenElse(better, v, best);
      at = hn::IfThenElse(hn::RebindMask(di, better), hn::Add(begin, hn::Set(di, places.taps[t])),
                          at);
    }
    store_some(best, d, to, count);
    store_some(at, di, places.to + h * p.window.out[2] + w, count);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pteryx::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pteryx::cpu {
HWY_EXPORT(mean);
HWY_EXPORT(largest);

void pool_mean(const Pooling& p, const float* padded, const float* rows, const float* columns,
               float* y) {
  HWY_DYNAMIC_DISPATCH(mean)(p, padded, rows, columns, y);
}
void pool_max(const Pooling& p, const float* padded, const Places& places, float* y) {
  HWY_DYNAMIC_DISPATCH(largest)(p, padded, places, y);
}
}  // namespace pteryx::cpu
#endif
