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

// x over its RMS, times `weight`.
void normalise(std::span<double> x, const HostTensor& weight, double eps) {
  double squares = 0;
  for (const double e : x) squares += e * e;
  const double scale = 1 / std::sqrt(squares / static_cast<double>(x.size()) + eps);
  for (size_t k = 0; k < x.size(); ++k) x[k] *= scale * weight.number(static_cast<int64_t>(k));
}

// x as the product sees it; rounding to codes is done in f32, as PyTorch does it.
std::vector<double> numbers(const QLinear& d, const Host& h) {
  const HostTensor x = h.host(d.x.id);
  std::vector<double> v(static_cast<size_t>(d.m * d.k));
  for (size_t i = 0; i < v.size(); ++i)
    v[i] = x.number(d.first_row * d.k + static_cast<int64_t>(i)) - d.x_zero;
  for (size_t first = 0; d.norm && first < v.size(); first += static_cast<size_t>(d.k))
    normalise(std::span(v).subspan(first, static_cast<size_t>(d.k)), h.host(d.norm->id), d.eps);
  if (!d.row_scale) return v;
  const HostTensor scales = h.host(d.row_scale->id);
  const HostTensor zeros = h.host(d.row_zero->id);
  for (int64_t m = 0; m < d.m; ++m) {
    const auto scale = static_cast<float>(scales.number(m));
    const double zero = zeros.number(m);
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
std::vector<double> sums_of(const QLinear& d, const Host& h) {
  const HostTensor weight = h.host(d.weight.id);
  const bool scaled = d.codes != Codes::kNone;
  const HostTensor scales = scaled ? h.host(d.scales.id) : HostTensor{};
  const HostTensor minimums = d.minimums ? h.host(d.minimums->id) : HostTensor{};
  const std::vector<double> x = numbers(d, h);
  std::vector<double> line(static_cast<size_t>(d.k));
  std::vector<double> sums(static_cast<size_t>(d.m * d.n));
  for (int64_t j = 0; j < d.n; ++j) {
    for (int64_t k = 0; k < d.k; ++k) {
      const double scale = scaled ? scales.number(d.scale_at(j, k)) : 1;
      const double minimum = d.minimums ? minimums.number(d.scale_at(j, k)) : 0;
      line[static_cast<size_t>(k)] = code(d, weight, j, k) * scale + minimum;
    }
    const double bias = d.bias ? h.host(d.bias->id).number(j) : 0.0;
    for (int64_t m = 0; m < d.m; ++m) {
      double total = 0;
      for (size_t k = 0; k < line.size(); ++k)
        total += x[static_cast<size_t>(m) * line.size() + k] * line[k];
      const double more = d.residual ? h.host(d.residual->id).number(m * d.n + j) : 0.0;
      sums[static_cast<size_t>(m * d.n + j)] = d.factor * total + bias + more;
    }
  }
  return sums;
}

void put_gated(const QLinear& d, const Host& h, const std::vector<double>& sums) {
  const int64_t half = d.n / 2;
  for (int64_t i = 0; i < d.m * half; ++i) {
    const double gate = sums[static_cast<size_t>(i / half * d.n + i % half)];
    const double up = sums[static_cast<size_t>(i / half * d.n + i % half + half)];
    h.host(d.y.id).put(i, gate / (1 + std::exp(-gate)) * up);
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

Status put_rotated(const Node& n, const QLinear& d, const Host& h, std::vector<double>& sums) {
  const Rotation& t = *d.rotation;
  PTERYX_ASSIGN(const RotationRows rows, rotation_rows(n));
  const int64_t kv = t.kv_width();
  const int64_t queries = d.n - 2 * kv;
  for (int64_t m = 0; m < d.m; ++m) {
    for (int64_t j = 0; j < queries + kv; j += t.size()) {
      const std::span head(sums.data() + m * d.n + j, static_cast<size_t>(t.size()));
      if (t.q_norm) normalise(head, h.host((j < queries ? t.q_norm : t.k_norm)->id), t.eps);
      turn(t, h, rows.table + m, head);
    }
    for (int64_t j = 0; j < d.n; ++j) {
      const double v = sums[static_cast<size_t>(m * d.n + j)];
      if (j < queries) {
        h.host(d.y.id).put(m * queries + j, v);
      } else {
        const Tensor& cache = j < queries + kv ? t.keys : t.values;
        h.host(cache.id).put((rows.caches + m) * kv + (j - queries) % kv, v);
      }
    }
  }
  return {};
}

}  // namespace

Status qlinear_on_cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const QLinear d, describe_qlinear(n));
  std::vector<double> sums = sums_of(d, h);
  if (d.gated) {
    put_gated(d, h, sums);
    return {};
  }
  if (d.rotation) return put_rotated(n, d, h, sums);
  for (const Columns& c : qlinear::results(d)) {
    for (int64_t i = 0; i < d.m * c.width; ++i) {
      h.host(c.y.id).put(i, sums[static_cast<size_t>(i / c.width * d.n + c.first + i % c.width)]);
    }
  }
  return {};
}

}  // namespace pteryx::ops
