// Linear layers with float weights and what they take in, against plain references.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

size_t at(int64_t i) { return static_cast<size_t>(i); }

struct Layer {
  int64_t rows, k;
  std::vector<int64_t> widths;
  DType x = DType::kF32;
  DType weight = DType::kF32;
  bool norm = false;
  bool bias = false;
  bool residual = false;
  bool gated = false;
  bool last = false;
};

TestTensor normalised(const TestTensor& x, const TestTensor& weight, double eps) {
  TestTensor y = x;
  const size_t k = weight.data.size();
  for (size_t first = 0; first < x.data.size(); first += k) {
    double squares = 0;
    for (size_t i = 0; i < k; ++i) squares += x.data[first + i] * x.data[first + i];
    const double scale = 1 / std::sqrt(squares / static_cast<double>(k) + eps);
    for (size_t i = 0; i < k; ++i) y.data[first + i] *= scale * weight.data[i];
  }
  return y;
}

// Sums over k of rows of x and rows of w.
std::vector<double> product(const TestTensor& x, const TestTensor& w) {
  const int64_t k = w.dims[1];
  const int64_t n = w.dims[0];
  std::vector<double> y(x.data.size() / at(k) * at(n));
  for (size_t i = 0; i < y.size(); ++i) {
    for (size_t j = 0; j < at(k); ++j)
      y[i] += x.data[i / at(n) * at(k) + j] * w.data[i % at(n) * at(k) + j];
  }
  return y;
}

Tolerance within(DType t) {
  return t == DType::kF16 ? Tolerance{2e-2, 2e-2} : Tolerance{1e-4, 1e-4};
}

void check(const Layer& l) {
  const int64_t n =
      std::accumulate(l.widths.begin(), l.widths.end(), int64_t{0}) * (l.gated ? 2 : 1);
  const TestTensor x = random(l.x, {1, l.rows, l.k}, 1, -1, 1);
  const TestTensor w = random(l.weight, {n, l.k}, 2, -0.3, 0.3);
  const TestTensor norm = random(l.x, {l.k}, 3, 0.5, 1.5);
  const TestTensor bias = random(l.x, {n}, 4, -1, 1);
  const int64_t m = l.last ? 1 : l.rows;
  const TestTensor residual = random(l.x, {1, m, n}, 5, -1, 1);
  TestTensor rows = l.norm ? normalised(x, norm, 1e-5) : x;
  if (l.last) rows.data.erase(rows.data.begin(), rows.data.end() - l.k);
  std::vector<double> sums = product(rows, w);
  for (size_t i = 0; i < sums.size(); ++i) {
    if (l.bias) sums[i] += bias.data[i % at(n)];
    if (l.residual) sums[i] += residual.data[i];
  }
  std::vector<TestTensor> want;
  int64_t first = 0;
  for (const int64_t width : l.widths) {
    const Dims dims = l.last ? Dims{1, width} : Dims{1, m, width};
    want.push_back(make(l.x, dims, [&](int64_t i) {
      const double v = sums[at(i / width * n + first + i % width)];
      if (!l.gated) return v;
      return v / (1 + std::exp(-v)) * sums[at(i / width * n + width + i % width)];
    }));
    first += width;
  }
  Case c("pteryx.linear");
  c.in(x);
  l.norm ? c.constant(norm).number(1e-5) : c.none().none();
  c.constant(w);
  l.bias ? c.constant(bias) : c.none();
  l.residual ? c.in(residual) : c.none();
  l.gated ? c.integer(1) : c.none();
  l.last ? c.integer(1) : c.none();
  c.ints(l.widths);
  c.outs(want);
  expect_op(c, want, within(l.x));
  if (m > 8) expect_matrices(c, want, within(DType::kF16), "matrix_small");
}

TEST(Linear, TakesInWhatIsAroundIt) {
  check({.rows = 1, .k = 64, .widths = {24, 8, 8}, .norm = true});
  check({.rows = 1, .k = 96, .widths = {20}, .weight = DType::kF16, .norm = true, .gated = true});
  check({.rows = 3,
         .k = 40,
         .widths = {12},
         .x = DType::kF16,
         .weight = DType::kF16,
         .residual = true,
         .last = false});
  check({.rows = 9, .k = 30, .widths = {12, 4}, .bias = true});
  check({.rows = 20, .k = 64, .widths = {24}, .norm = true, .residual = true});
  check({.rows = 5, .k = 32, .widths = {10}, .norm = true, .bias = true, .last = true});
}

TEST(Linear, AddsABiasAndAResidual) {
  check({.rows = 2, .k = 32, .widths = {7}, .bias = true, .residual = true});
}

// Queries, keys and values: two heads of queries, one of keys, pairs half a head apart or
// neighbours.
void check_rotated(int64_t rows, bool halves, bool heads_normed, DType weight, DType cache) {
  constexpr int64_t kK = 64;
  constexpr int64_t kSize = 8;
  constexpr int64_t kN = 4 * kSize;
  constexpr int64_t kCapacity = 12;
  constexpr int64_t kStart = 2;
  const int64_t columns = halves ? kSize : kSize / 2;
  const TestTensor x = random(DType::kF32, {1, rows, kK}, 1, -1, 1);
  const TestTensor norm = random(DType::kF32, {kK}, 3, 0.5, 1.5);
  const TestTensor w = random(weight, {kN, kK}, 2, -0.3, 0.3);
  const TestTensor cos = random(DType::kF32, {kCapacity, columns}, 6, -1, 1);
  const TestTensor sin = random(DType::kF32, {kCapacity, columns}, 7, -1, 1);
  const TestTensor q_norm = random(DType::kF32, {kSize}, 8, 0.5, 1.5);
  const TestTensor k_norm = random(DType::kF32, {kSize}, 9, 0.5, 1.5);
  const TestTensor keys = random(cache, {1, kCapacity, 1, kSize}, 10);
  const TestTensor values = random(cache, {1, kCapacity, 1, kSize}, 11);
  std::vector<double> sums = product(normalised(x, norm, 1e-5), w);
  for (int64_t i = 0; heads_normed && i < rows * kN; i += kSize) {
    const int64_t head = i % kN / kSize;
    if (head == 3) continue;
    const TestTensor one = make(DType::kF32, {kSize}, [&](int64_t d) { return sums[at(i + d)]; });
    const TestTensor done = normalised(one, head < 2 ? q_norm : k_norm, 1e-4);
    std::copy(done.data.begin(), done.data.end(), sums.begin() + i);
  }
  const auto turned = [&](int64_t m, int64_t j) {
    const int64_t d = j % kSize;
    const int64_t partner = halves ? (d + kSize / 2) % kSize : d ^ 1;
    const bool first = halves ? d < kSize / 2 : d % 2 == 0;
    const int64_t table = (kStart + m) * columns + (halves ? d : d / 2);
    const double other = sums[at(m * kN + j - d + partner)];
    return sums[at(m * kN + j)] * cos.data[at(table)] +
           (first ? -other : other) * sin.data[at(table)];
  };
  const TestTensor y = make(DType::kF32, {1, rows, 2, kSize},
                            [&](int64_t i) { return turned(i / (2 * kSize), i % (2 * kSize)); });
  TestTensor new_keys = keys;
  TestTensor new_values = values;
  for (int64_t i = 0; i < rows * kSize; ++i) {
    const int64_t m = i / kSize;
    new_keys.data[at(kStart * kSize + i)] = turned(m, 2 * kSize + i % kSize);
    new_values.data[at(kStart * kSize + i)] = sums[at(m * kN + 3 * kSize + i % kSize)];
  }
  Case c("pteryx.linear_rope");
  c.in(x).constant(norm).number(1e-5).constant(w).none().in(cos).in(sin).live(kStart);
  c.integer(halves ? 1 : 0);
  heads_normed ? c.constant(q_norm).constant(k_norm).number(1e-4) : c.none().none().none();
  c.in(keys).in(values).live(kStart);
  const std::vector<TestTensor> want = {y, new_keys, new_values};
  expect_op(c.out(DType::kF32, y.dims), want, within(cache));
  expect_route(c, "", want, within(cache), [](gpu::Caps& caps) { caps.max_storage_buffers = 8; });
}

TEST(Linear, QueriesKeysAndValuesAreTurnedAndKept) {
  check_rotated(1, true, false, DType::kF16, DType::kF16);
  check_rotated(3, false, true, DType::kF32, DType::kF32);
  check_rotated(1, false, false, DType::kF32, DType::kF32);
}

}  // namespace
}  // namespace pteryx::ops::testing
