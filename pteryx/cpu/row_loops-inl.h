// Loops over rows of f32. Included once for each target. SPDX-License-Identifier: BSD-3-Clause
#if defined(PTERYX_CPU_ROW_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PTERYX_CPU_ROW_LOOPS_INL_H_
#undef PTERYX_CPU_ROW_LOOPS_INL_H_
#else
#define PTERYX_CPU_ROW_LOOPS_INL_H_
#endif

#include <cstddef>

#include "pteryx/cpu/functions-inl.h"
#include "pteryx/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pteryx::cpu {
namespace HWY_NAMESPACE {

// to = map(at, load) for all of `count` values, the last with fewer than a vector.
template <class Map>
HWY_INLINE void map_row(size_t count, float* to, const Map& map) {
  const Floats d;
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    hn::StoreU(map(i, [d](const float* from) HWY_ATTR { return hn::LoadU(d, from); }), d, to + i);
  if (i == count) return;
  const size_t rest = count - i;
  const V v = map(i, [d, rest](const float* from) HWY_ATTR { return load_part(d, from, rest); });
  store_part(v, d, to + i, rest);
}

// The sum of map(x) for a row; map(0) has to be 0 where the row does not fill its last vector.
template <class Map>
HWY_INLINE float sum_row(const float* x, size_t count, const Map& map) {
  const Floats d;
  V sum[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  size_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    PTERYX_UNROLL for (size_t j = 0; j < 4; ++j) sum[j] =
        hn::Add(sum[j], map(hn::LoadU(d, x + i + j * kLanes)));
  }
  for (; i + kLanes <= count; i += kLanes) sum[0] = hn::Add(sum[0], map(hn::LoadU(d, x + i)));
  V all = hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3]));
  if (i < count) {
    const auto used = hn::FirstN(d, count - i);
    all = hn::Add(all, hn::IfThenElseZero(used, map(load_part(d, x + i, count - i))));
  }
  return hn::GetLane(hn::SumOfLanes(d, all));
}

}  // namespace HWY_NAMESPACE
}  // namespace pteryx::cpu
HWY_AFTER_NAMESPACE();

#endif
