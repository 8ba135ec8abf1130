// Linear layers with quantised weights on the CPU, in double precision.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "pteryx/ops/quant/parts.h"
#include "pteryx/ops/quant/qlinear.h"

namespace pteryx::ops {
namespace {

using qlinear::Columns;

double code(const QLinear& d, const HostTensor& weight, int64_t n, int64_t k) {
  if (d.codes == Codes::kNone) return weight.number(n * d.k + k);
  if (d.codes == Codes::kBytes) return static_cast<double>(weight.integer(n * d.row_bytes + k));
  const int64_t byte = weight.integer(n * d.row_bytes + k / 2);
  const int64_t own = (k % 2 == 0) == (d.codes == Codes::kLowFirst) ? byte : byte >> 4;
  return static_cast<double>((own & 15) - 8);
}

// Some of the m rows.
struct Rows {
  int64_t first = 0;
  int64_t count = 0;
};
// Elements of x and of sums that are held at a time, one row at least.
constexpr int64_t kMostHeld = 1 << 17;

// x over its RMS, times `weight`.
void normalise(std::span<double> x, const HostTensor& weight, double eps) {
  double squares = 0;
  for (const double e : x) squares += e * e;
  const double scale = 1 / std::sqrt(squares / static_cast<double>(x.size()) + eps);
  for (size_t k = 0; k < x.size(); ++k) x[k] *= scale * weight.number(static_cast<int64_t>(k));
}

// x as the product sees it; rounding to codes is done in f32, as PyTorch does it.
std::vector<double> numbers(const QLinear& d, const Rows& r, const Host& h) {
  const HostTensor x = h.host(d.x.id);
  std::vector<double> v(static_cast<size_t>(r.count * d.k));
  for (size_t i = 0; i < v.size(); ++i)
    v[i] = x.number((d.first_row + r.first) * d.k + static_cast<int64_t>(i)) - d.x_zero;
  for (size_t first = 0; d.norm && first < v.size(); first += static_cast<size_t>(d.k))
    normalise(std::span(v).subspan(first, static_cast<size_t>(d.k)), h.host(d.norm->id), d.eps);
  if (!d.row_scale) return v;
  const HostTensor scales = h.host(d.row_scale->id);
  const HostTensor zeros = h.host(d.row_zero->id);
  for (int64_t m = 0; m < r.count; ++m) {
    const auto scale = static_cast<float>(scales.number(r.first + m));
    const double zero = zeros.number(r.first + m);
    for (int64_t k = 0; k < d.k; ++k) {
      double& e = v[static_cast<size_t>(m * d.k + k)];
      const float rounded = std::nearbyint(static_cast<float>(e) * (1.0F / scale));
      e = (std::clamp(static_cast<double>(rounded) + zero, -128.0, 127.0) - zero) *
          static_cast<double>(scale);
    }
  }
  return v;
}

// One result per row of x and row of weights.
std::vector<double> sums_of(const QLinear& d, const Rows& r, const Host& h) {
  const HostTensor weight = h.host(d.weight.id);
  const bool scaled = d.codes != Codes::kNone;
  const HostTensor scales = scaled ? h.host(d.scales.id) : HostTensor{};
  const HostTensor minimums = d.minimums ? h.host(d.minimums->id) : HostTensor{};
  const std::vector<double> x = numbers(d, r, h);
  std::vector<double> line(static_cast<size_t>(d.k));
  std::vector<double> sums(static_cast<size_t>(r.count * d.n));
  for (int64_t j = 0; j < d.n; ++j) {
    for (int64_t k = 0; k < d.k; ++k) {
      const double scale = scaled ? scales.number(d.scale_at(j, k)) : 1;
      const double minimum = d.minimums ? minimums.number(d.scale_at(j, k)) : 0;
      line[static_cast<size_t>(k)] = code(d, weight, j, k) * scale + minimum;
    }
    const double bias = d.bias ? h.host(d.bias->id).number(j) : 0.0;
    for (int64_t m = 0; m < r.count; ++m) {
      double total = 0;
      for (size_t k = 0; k < line.size(); ++k)
        total += x[static_cast<size_t>(m) * line.size() + k] * line[k];
      const double more = d.residual ? h.host(d.residual->id).number((r.first + m) * d.n + j) : 0.0;
      sums[static_cast<size_t>(m * d.n + j)] = d.factor * total + bias + more;
    }
  }
  return sums;
}

void put_gated(const QLinear& d, const Rows& r, const Host& h, const std::vector<double>& sums) {
  const int64_t half = d.n / 2;
  for (int64_t i = 0; i < r.count * half; ++i) {
    const double gate = sums[static_cast<size_t>(i / half * d.n + i % half)];
    const double up = sums[static_cast<size_t>(i / half * d.n + i % half + half)];
    h.host(d.y.id).put(r.first * half + i, gate / (1 + std::exp(-gate)) * up);
  }
}

// A head of queries or keys, turned by a row of the tables.
void turn(const Rotation& t, const Host& h, int64_t table_row, std::span<double> head) {
  const HostTensor cos = h.host(t.cos.id);
  const HostTensor sin = h.host(t.sin.id);
  const int64_t half = t.size() / 2;
  for (int64_t i = 0; i < half; ++i) {
    double& a = head[static_cast<size_t>(t.halves ? i : 2 * i)];
    double& b = head[static_cast<size_t>(t.halves ? i + half : 2 * i + 1)];
    const int64_t at_a = t.halves ? table_row * t.size() + i : table_row * half + i;
    const int64_t at_b = t.halves ? at_a + half : at_a;
    const double turned = a * cos.number(at_a) - b * sin.number(at_a);
    b = b * cos.number(at_b) + a * sin.number(at_b);
    a = turned;
  }
}

void put_rotated(const QLinear& d, const RotationRows& rows, const Rows& r, const Host& h,
                 std::vector<double>& sums) {
  const Rotation& t = *d.rotation;
  const int64_t kv = t.kv_width();
  const int64_t queries = d.n - 2 * kv;
  for (int64_t own = 0; own < r.count; ++own) {
    const int64_t m = r.first + own;
    double* const row = sums.data() + own * d.n;
    for (int64_t j = 0; j < queries + kv; j += t.size()) {
      const std::span head(row + j, static_cast<size_t>(t.size()));
      if (t.q_norm) normalise(head, h.host((j < queries ? t.q_norm : t.k_norm)->id), t.eps);
      turn(t, h, rows.table + m, head);
    }
    for (int64_t j = 0; j < d.n; ++j) {
      const double v = row[j];
      if (j < queries) {
        h.host(d.y.id).put(m * queries + j, v);
      } else {
        const Tensor& cache = j < queries + kv ? t.keys : t.values;
        h.host(cache.id).put((rows.caches + m) * kv + (j - queries) % kv, v);
      }
    }
  }
}

void put_results(const QLinear& d, const Rows& r, const Host& h, const std::vector<double>& sums) {
  for (const Columns& c : qlinear::results(d)) {
    for (int64_t i = 0; i < r.count * c.width; ++i) {
      h.host(c.y.id).put(r.first * c.width + i,
                         sums[static_cast<size_t>(i / c.width * d.n + c.first + i % c.width)]);
    }
  }
}

}  // namespace

Status qlinear_on_cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const QLinear d, describe_qlinear(n));
  RotationRows rows;
  if (d.rotation) {
    PTERYX_ASSIGN(rows, rotation_rows(n));
  }
  const int64_t most = std::max<int64_t>(kMostHeld / std::max<int64_t>(d.k + d.n, 1), 1);
  for (Rows r; r.first < d.m; r.first += r.count) {
    r.count = std::min(most, d.m - r.first);
    std::vector<double> sums = sums_of(d, r, h);
    if (d.gated) {
      put_gated(d, r, h, sums);
    } else if (d.rotation) {
      put_rotated(d, rows, r, h, sums);
    } else {
      put_results(d, r, h, sums);
    }
  }
  return {};
}

}  // namespace pteryx::ops
