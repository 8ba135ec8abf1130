// Reductions on the CPU. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>

#include "pteryx/ops/float_rows.h"
#include "pteryx/ops/reduce.h"

namespace pteryx::ops {
namespace {

using Rule = ReduceRule;

// One row on the host: the offsets of its elements are base + items[k].
struct HostRow {
  const HostTensor& x;
  int64_t base;
  const std::vector<int64_t>& items;
  double number(size_t k) const { return x.number(base + items[k]); }
  int64_t integer(size_t k) const { return x.integer(base + items[k]); }
};

// Sums and products of integers wrap.
void put_arithmetic(const HostRow& r, Rule rule, const HostTensor& y, int64_t i) {
  if (is_float(y.dtype)) {
    double total = rule == Rule::kProd ? 1.0 : 0.0;
    for (size_t k = 0; k < r.items.size(); ++k)
      total = rule == Rule::kProd ? total * r.number(k) : total + r.number(k);
    y.put(i, rule == Rule::kMean ? total / static_cast<double>(r.items.size()) : total);
    return;
  }
  uint64_t total = rule == Rule::kProd ? 1 : 0;
  for (size_t k = 0; k < r.items.size(); ++k) {
    const auto v = static_cast<uint64_t>(r.integer(k));
    total = rule == Rule::kProd ? total * v : total + v;
  }
  y.put_integer(i, static_cast<int64_t>(total));
}

// The first of the largest (smallest), where NaN is larger (smaller) than anything.
size_t best_item(const HostRow& r, bool smallest) {
  size_t best = 0;
  for (size_t k = 1; k < r.items.size(); ++k) {
    if (is_float(r.x.dtype)) {
      const double a = r.number(best);
      const double b = r.number(k);
      if (std::isnan(a)) break;
      if (std::isnan(b) || (smallest ? b < a : b > a)) best = k;
    } else if (smallest ? r.integer(k) < r.integer(best) : r.integer(k) > r.integer(best)) {
      best = k;
    }
  }
  return best;
}

void put_value(const HostRow& r, size_t k, const HostTensor& y, int64_t i) {
  if (is_float(r.x.dtype)) return y.put(i, r.number(k));
  y.put_integer(i, r.integer(k));
}

struct Moments {
  double mean = 0;
  double variance = 0;
};
Moments moments(const HostRow& r, double correction) {
  Moments m;
  const auto count = static_cast<double>(r.items.size());
  for (size_t k = 0; k < r.items.size(); ++k) m.mean += r.number(k);
  m.mean /= count;
  for (size_t k = 0; k < r.items.size(); ++k)
    m.variance += (r.number(k) - m.mean) * (r.number(k) - m.mean);
  m.variance /= std::max(count - correction, 0.0);
  return m;
}

void put_row(const Reduction& s, const HostRow& r, const HostTensor& y, const HostTensor& second,
             int64_t i) {
  if (is_variance(s.rule)) {
    const Moments m = moments(r, s.correction);
    y.put(i, s.rule == Rule::kStd ? std::sqrt(m.variance) : m.variance);
    if (s.rule == Rule::kVarMean) second.put(i, m.mean);
  } else if (is_extreme(s.rule)) {
    const size_t best = best_item(r, is_minimum(s.rule));
    if (has_value(s.rule)) put_value(r, best, y, i);
    if (has_index(s.rule)) second.put_integer(i, static_cast<int64_t>(best));
  } else {
    put_arithmetic(r, s.rule, y, i);
  }
}

}  // namespace

Status reduce_on_cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const Reduction s, describe_reduction(n));
  const HostTensor x = h.host(n.in(0).id);
  const HostTensor y = h.host(n.out_id());
  const HostTensor second = n.out_count() == 2 ? h.host(n.out_id(1)) : y;
  std::vector<int64_t> items;
  for_each_index<1>(s.items.dims, {s.items.strides[0]},
                    [&](int64_t, const std::array<int64_t, 1>& at) { items.push_back(at[0]); });
  for_each_index<1>(s.rows.dims, {s.rows.strides[0]},
                    [&](int64_t i, const std::array<int64_t, 1>& at) {
                      put_row(s, {x, at[0], items}, y, second, i);
                    });
  return {};
}

Result<bool> reduce_fast(const Node& n, const Host& h, CpuContext& c) {
  PTERYX_ASSIGN(const Reduction s, describe_reduction(n));
  const bool dense = s.items.dims.rank() == 1 && s.items.strides[0][0] == 1;
  if ((s.rule != Rule::kSum && s.rule != Rule::kMean) || !dense || n.out_count() != 1 ||
      !is_f32_or_f16(n.in(0)) || !is_f32_or_f16(n.out()) || s.length == 0)
    return false;
  const float* const x = widened(h.host(n.in(0).id), c);
  const HostTensor to = h.host(n.out_id());
  float* const y = is_f32(n.out()) ? floats(to) : c.memory.take_array<float>(size(to.numel()));
  const auto length = static_cast<size_t>(s.length);
  const float by = s.rule == Rule::kMean ? static_cast<float>(s.length) : 1.0F;
  for_parts(c, static_cast<size_t>(s.row_count), kPartElements / length,
            [&](size_t begin, size_t end) {
              for (size_t row = begin; row < end; ++row) {
                const auto at =
                    offsets_at<1>(static_cast<int64_t>(row), s.rows.dims, {&s.rows.strides[0]});
                y[row] = cpu::mean_of(x + at[0], length, by);
              }
            });
  if (!is_f32(n.out()) && !c.dry_run()) store_floats(y, to, 0, size(to.numel()));
  return true;
}

}  // namespace pteryx::ops
