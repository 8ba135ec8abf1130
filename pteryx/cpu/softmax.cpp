// Softmax of rows and of columns.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pteryx/cpu/softmax.cpp"
#include <algorithm>
#include <cmath>
#include <limits>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "pteryx/cpu/functions-inl.h"
#include "pteryx/cpu/row_loops-inl.h"
#include "pteryx/cpu/softmax.h"
#include "pteryx/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pteryx::cpu {
namespace HWY_NAMESPACE {
namespace {

// A NaN that the maximum misses comes through exp into the sum, and so into all of the row.
float largest_of(const float* x, size_t count) {
  const Floats d;
  V most = hn::Set(d, -std::numeric_limits<float>::infinity());
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) most = hn::Max(most, hn::LoadU(d, x + i));
  float largest = hn::GetLane(hn::MaxOfLanes(d, most));
  for (; i < count; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

void plain_row(const float* x, size_t width, float* y) {
  const Floats d;
  const V most = hn::Set(d, largest_of(x, width));
  map_row(width, y,
          [&](size_t i, auto load) HWY_ATTR { return exp_of(d, hn::Sub(load(x + i), most)); });
  const V scale = hn::Set(d, 1.0F / sum_row(y, width, [](V v) HWY_ATTR { return v; }));
  map_row(width, y, [&](size_t i, auto load) HWY_ATTR { return hn::Mul(load(y + i), scale); });
}

void log_row(const float* x, size_t width, float* y) {
  const Floats d;
  const V most = hn::Set(d, largest_of(x, width));
  const float total =
      sum_row(x, width, [d, most](V v) HWY_ATTR { return exp_of(d, hn::Sub(v, most)); });
  const V log_total = hn::Set(d, std::log(total));
  map_row(width, y, [&](size_t i, auto load) HWY_ATTR {
    return hn::Sub(hn::Sub(load(x + i), most), log_total);
  });
}

void softmax_rows(SoftmaxKind kind, const float* x, size_t rows, size_t width, float* y) {
  for (size_t row = 0; row < rows; ++row, x += width, y += width) {
    if (kind == SoftmaxKind::kLog) {
      log_row(x, width, y);
    } else {
      plain_row(x, width, y);
    }
  }
}

V log_of_lanes(V v) {
  const Floats d;
  HWY_ALIGN float lanes[kLanes];
  hn::Store(v, d, lanes);
  for (float& f : lanes) f = std::log(f);
  return hn::Load(d, lanes);
}

// A vector of neighbouring columns, read and written with `load` and `store`.
template <class Load, class Store>
HWY_INLINE void soften_columns(SoftmaxKind kind, size_t length, const Load& load,
                               const Store& store) {
  const Floats d;
  V most = load(0);
  for (size_t k = 1; k < length; ++k) most = hn::Max(most, load(k));
  V total = hn::Zero(d);
  for (size_t k = 0; k < length; ++k) total = hn::Add(total, exp_of(d, hn::Sub(load(k), most)));
  if (kind == SoftmaxKind::kLog) {
    const V log_total = log_of_lanes(total);
    for (size_t k = 0; k < length; ++k) store(k, hn::Sub(hn::Sub(load(k), most), log_total));
  } else {
    const V scale = hn::Div(hn::Set(d, 1.0F), total);
    for (size_t k = 0; k < length; ++k) store(k, hn::Mul(exp_of(d, hn::Sub(load(k), most)), scale));
  }
}

void soften_all_columns(SoftmaxKind kind, const Columns& c, const float* x, float* y) {
  const Floats d;
  size_t i = c.begin;
  for (; i + kLanes <= c.end; i += kLanes) {
    soften_columns(
        kind, c.length, [&](size_t k) HWY_ATTR { return hn::LoadU(d, x + k * c.columns + i); },
        [&](size_t k, V v) HWY_ATTR { hn::StoreU(v, d, y + k * c.columns + i); });
  }
  if (i == c.end) return;
  const size_t rest = c.end - i;
  soften_columns(
      kind, c.length, [&](size_t k) HWY_ATTR { return load_part(d, x + k * c.columns + i, rest); },
      [&](size_t k, V v) HWY_ATTR { store_part(v, d, y + k * c.columns + i, rest); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pteryx::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pteryx::cpu {
HWY_EXPORT(softmax_rows);
HWY_EXPORT(soften_all_columns);
void softmax(SoftmaxKind kind, const float* x, size_t rows, size_t width, float* y) {
  HWY_DYNAMIC_DISPATCH(softmax_rows)(kind, x, rows, width, y);
}
void softmax_columns(SoftmaxKind kind, const Columns& c, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(soften_all_columns)(kind, c, x, y);
}
}  // namespace pteryx::cpu
#endif
