// Quantised layers with slots: several in one, and what is around them in them.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/op_harness.h"
#include "pteryx/ops/testing/quantised_weight.h"

namespace pteryx::ops::testing {
namespace {

size_t at(int64_t i) { return static_cast<size_t>(i); }

// Several layers in one, whose columns go to as many results; or one with something added, or
// gated.
struct Joined {
  int64_t m, k;
  std::vector<int64_t> widths;
  bool four = true;
  DType type = DType::kF32;
  bool norm = false;
  bool gated = false;
  bool minimums = false;  // of four
  bool blocks = false;    // scales and minimums in f16, of eight columns together
};

// Numbers [groups, n] as [n / 8, groups, 8] in f16, and what is left of them.
TestTensor in_blocks(TestTensor& numbers) {
  const int64_t groups = numbers.dims[0];
  const int64_t n = numbers.dims[1];
  for (double& v : numbers.data) v = double{half_to_float(float_to_half(static_cast<float>(v)))};
  return make(DType::kF16, {n / 8, groups, 8}, [&](int64_t i) {
    return numbers.data[at(i / 8 % groups * n + i / 8 / groups * 8 + i % 8)];
  });
}

// x as a layer with a norm sees it.
TestTensor normalised(const TestTensor& x, const TestTensor& weight, double eps) {
  const auto k = weight.data.size();
  TestTensor y = x;
  for (size_t first = 0; first < y.data.size(); first += k) {
    double squares = 0;
    for (size_t i = 0; i < k; ++i) squares += x.data[first + i] * x.data[first + i];
    const double scale = 1 / std::sqrt(squares / static_cast<double>(k) + eps);
    for (size_t i = 0; i < k; ++i) y.data[first + i] *= scale * weight.data[i];
  }
  return y;
}

// The first half of the columns gates the second.
TestTensor gated(const TestTensor& x) {
  const int64_t half = x.dims[x.dims.rank() - 1] / 2;
  Dims dims = x.dims;
  dims[dims.rank() - 1] = half;
  return make(x.dtype, dims, [&](int64_t i) {
    const double gate = x.data[at(i / half * 2 * half + i % half)];
    return gate / (1 + std::exp(-gate)) * x.data[at(i / half * 2 * half + half + i % half)];
  });
}

void check_joined(const Joined& j) {
  const auto [m, k, widths, four, t, norm, gate, has_minimums, blocks] = j;
  const int64_t n = std::accumulate(widths.begin(), widths.end(), int64_t{0}) * (gate ? 2 : 1);
  const int64_t group = four ? 32 : k;
  const TestTensor x = random(t, {1, m, k}, 1, -1, 1);
  const TestTensor norm_weight = random(t, {k}, 7, 0.5, 1.5);
  const QuantisedWeight w(n, k, four ? -8 : -100, four ? 7 : 100);
  TestTensor scales =
      random(t, four ? Dims{k / group, n} : Dims{n}, 2, four ? 0.01 : 0.001, four ? 0.05 : 0.003);
  TestTensor minimums = random(t, {k / group, n}, 6, -0.1, 0.1);
  const TestTensor given_scales = blocks ? in_blocks(scales) : scales;
  const TestTensor given_minimums = blocks ? in_blocks(minimums) : minimums;
  const bool adds = widths.size() == 1 && !gate;
  const TestTensor residual = random(t, {m, n}, 5);
  TestTensor whole = quantised_reference(
      norm ? normalised(x, norm_weight, 1e-5) : x, w,
      [&](int64_t row, int64_t column) { return scales.data[at(column / group * n + row)]; },
      no_bias, t,
      [&](int64_t row, int64_t column) {
        return has_minimums ? minimums.data[at(column / group * n + row)] : 0;
      });
  Case c(four ? "pteryx.linear_q4gsw" : "pteryx.linear_q8");
  c.in(x);
  norm ? c.constant(norm_weight).number(1e-5) : c.none().none();
  c.constant(four ? w.nibbles(k / 2, true) : w.bytes()).in(given_scales);
  if (four) c.integer(group);
  if (four) has_minimums ? c.in(given_minimums) : c.none();
  c.none();
  adds ? c.in(residual) : c.none();
  gate ? c.integer(1) : c.none();
  c.none();
  if (adds)
    for (size_t i = 0; i < whole.data.size(); ++i) whole.data[i] += residual.data[i];
  if (gate) whole = gated(whole);
  c.ints(widths);
  std::vector<TestTensor> want;
  const int64_t columns = whole.dims[whole.dims.rank() - 1];
  int64_t first = 0;
  for (const int64_t width : widths) {
    want.push_back(make(t, {1, m, width}, [&](int64_t i) {
      return whole.data[at(i / width * columns + first + i % width)];
    }));
    first += width;
  }
  expect_op(c.outs(want), want, quantised_tolerance(t));
  // Of few rows the route for them; the others run on those of many.
  if (m > 8) expect_matrices(c, want, quantised_tolerance(DType::kF16), m < 16 ? "matrix_few" : "");
}

TEST(JoinedQLinear, JoinedLayersHaveTheColumnsOfEach) {
  check_joined({1, 64, {64, 32, 32}, true, DType::kF32});
  check_joined({40, 64, {40, 4, 24}, true, DType::kF32});
  check_joined({9, 2048, {64, 72, 4}, true, DType::kF32});  // k is cut
  check_joined({3, 96, {8, 36}, false, DType::kF16});
}

TEST(JoinedQLinear, ALayerTakesTheAdditionBehindIt) {
  check_joined({1, 64, {33}, true, DType::kF32});
  check_joined({40, 64, {36}, true, DType::kF32});
  check_joined({9, 2048, {32}, true, DType::kF32});
  check_joined({2, 96, {10}, false, DType::kF16});
}

TEST(JoinedQLinear, ALayerTakesTheNormBeforeIt) {
  check_joined({1, 64, {32, 16, 16}, true, DType::kF32, true});
  check_joined({1, 2080, {8}, true, DType::kF32, true});
  check_joined({3, 96, {12}, false, DType::kF16, true});
  check_joined({12, 64, {36}, true, DType::kF32, true});
}

TEST(JoinedQLinear, ALayerTakesTheGateBehindIt) {
  check_joined({1, 64, {36}, true, DType::kF32, true, true});
  check_joined({1, 96, {12}, false, DType::kF16, false, true});
  check_joined({4, 64, {8}, true, DType::kF32, true, true});
  check_joined({7, 64, {8}, true, DType::kF32, true, true});
  check_joined({12, 64, {40}, true, DType::kF32, false, true});
}

TEST(JoinedQLinear, GroupsHaveMinimums) {
  check_joined({1, 64, {64, 32, 32}, true, DType::kF32, true, false, true});
  check_joined({1, 2080, {8}, true, DType::kF32, true, false, true});
  check_joined({1, 64, {33}, true, DType::kF32, false, false, true});  // and a residual
  check_joined({1, 96, {12}, true, DType::kF16, false, true, true});
  check_joined({1, 64, {36}, true, DType::kF32, true, true, true, true});
  check_joined({6, 1024, {40, 8}, true, DType::kF32, false, false, true, true});
  check_joined({7, 64, {8}, true, DType::kF32, true, true, true});
  check_joined({40, 64, {40, 4, 24}, true, DType::kF32, false, false, true});
  check_joined({9, 2048, {64, 72, 8}, true, DType::kF32, false, false, true, true});  // k is cut
  check_joined({12, 64, {40}, true, DType::kF32, false, true, true});
}

TEST(JoinedQLinear, MinimumsAreLikeScales) {
  const TestTensor x = random(DType::kF32, {1, 32}, 1);
  const QuantisedWeight w(8, 32, -8, 7);
  const auto with = [&](const TestTensor& minimums) {
    Case c("pteryx.linear_q4gsw");
    c.in(x).none().none().constant(w.nibbles(16, true)).in(random(DType::kF32, {1, 8}, 2));
    c.integer(32).in(minimums).none().none().none().none().ints({8});
    return std::move(c.outs({{DType::kF32, {1, 8}, {}}}));
  };
  expect_error(with(random(DType::kF32, {1, 12}, 3)), "shape: expected [1, 8], got [1, 12]");
  expect_error(with(random(DType::kF16, {1, 8}, 3)), "type: expected f32, got f16");
}

TEST(JoinedQLinear, ALayerTakesTheLastRow) {
  constexpr int64_t kK = 64;
  constexpr int64_t kN = 36;
  for (const int64_t rows : {1, 5}) {
    const TestTensor x = random(DType::kF32, {1, rows, kK}, 1, -1, 1);
    const TestTensor last =
        make(DType::kF32, {1, kK}, [&](int64_t i) { return x.data[at((rows - 1) * kK + i)]; });
    const TestTensor norm = random(DType::kF32, {kK}, 7, 0.5, 1.5);
    const QuantisedWeight w(kN, kK, -100, 100);
    const TestTensor scales = random(DType::kF32, {kN}, 2, 0.001, 0.003);
    const TestTensor want = quantised_reference(
        normalised(last, norm, 1e-5), w, [&](int64_t n, int64_t) { return scales.data[at(n)]; },
        no_bias, DType::kF32);
    Case c("pteryx.linear_q8");
    c.in(x).constant(norm).number(1e-5).constant(w.bytes()).in(scales).none().none().none();
    c.integer(1).ints({kN});
    expect_op(c.outs({want}), {want}, quantised_tolerance(DType::kF32));
  }
}

struct Rotated {
  int64_t rows, start;
  bool four;
  DType cache_type;
  bool halves = false;  // pairs are half a head apart
  bool heads_normed = false;
  bool has_bias = false;
  int64_t size = 8;  // of a head
  int64_t k = 64;
  bool has_minimums = false;  // of four
};

// Queries, keys and values: the first two turned, the others where they belong in the caches.
void check_rotated(const Rotated& r) {
  const auto [rows, start, four, cache_type, halves, heads_normed, has_bias, size, k,
              has_minimums] = r;
  constexpr int64_t kHeads = 3;
  constexpr int64_t kvHeads = 2;
  constexpr int64_t kCapacity = 24;
  const int64_t queries = kHeads * size;
  const int64_t kv = kvHeads * size;
  const int64_t n = queries + 2 * kv;
  const int64_t group = four ? 32 : k;
  const TestTensor x = random(DType::kF32, {1, rows, k}, 1, -1, 1);
  const TestTensor norm = random(DType::kF32, {k}, 7, 0.5, 1.5);
  const QuantisedWeight w(n, k, four ? -8 : -100, four ? 7 : 100);
  const TestTensor scales = random(DType::kF32, four ? Dims{k / group, n} : Dims{n}, 2,
                                   four ? 0.01 : 0.001, four ? 0.05 : 0.003);
  const TestTensor minimums = random(DType::kF32, {k / group, n}, 6, -0.1, 0.1);
  const int64_t table_width = halves ? size : size / 2;
  const TestTensor cos = random(DType::kF32, {kCapacity + 1, table_width}, 11, -1, 1);
  const TestTensor sin = random(DType::kF32, {kCapacity + 1, table_width}, 12, -1, 1);
  const TestTensor q_norm = random(DType::kF32, {size}, 15, 0.5, 1.5);
  const TestTensor k_norm = random(DType::kF32, {size}, 16, 0.5, 1.5);
  const TestTensor bias = random(DType::kF32, {n}, 17, -1, 1);
  const TestTensor keys = random(cache_type, {1, kCapacity, kvHeads, size}, 13);
  const TestTensor values = random(cache_type, {1, kCapacity, kvHeads, size}, 14);
  TestTensor sums = quantised_reference(
      normalised(x, norm, 1e-5), w,
      [&](int64_t row, int64_t column) { return scales.data[at(column / group * n + row)]; },
      [&](int64_t j) { return has_bias ? bias.data[at(j)] : 0.0; }, DType::kF32,
      [&](int64_t row, int64_t column) {
        return has_minimums ? minimums.data[at(column / group * n + row)] : 0;
      });
  for (int64_t i = 0; heads_normed && i < rows * n; i += size) {
    if (i % n >= queries + kv) continue;
    const TestTensor head =
        make(DType::kF32, {size}, [&](int64_t d) { return sums.data[at(i + d)]; });
    const TestTensor done = normalised(head, i % n < queries ? q_norm : k_norm, 1e-4);
    std::copy(done.data.begin(), done.data.end(), sums.data.begin() + i);
  }
  const auto turned = [&](int64_t m, int64_t j) {
    const int64_t d = j % size;
    const int64_t partner = halves ? (d + size / 2) % size : d ^ 1;
    const bool first = halves ? d < size / 2 : d % 2 == 0;
    const int64_t table = (start + 1 + m) * table_width + (halves ? d : d / 2);
    const double own = sums.data[at(m * n + j)];
    const double other = sums.data[at(m * n + j - d + partner)];
    return own * cos.data[at(table)] + (first ? -other : other) * sin.data[at(table)];
  };
  const TestTensor y = make(DType::kF32, {1, rows, kHeads, size},
                            [&](int64_t i) { return turned(i / queries, i % queries); });
  TestTensor new_keys = keys;
  TestTensor new_values = values;
  for (int64_t i = 0; i < rows * kv; ++i) {
    const int64_t m = i / kv;
    new_keys.data[at((start + m) * kv + i % kv)] = turned(m, queries + i % kv);
    new_values.data[at((start + m) * kv + i % kv)] = sums.data[at(m * n + queries + kv + i % kv)];
  }
  Case c(four ? "pteryx.linear_q4gsw_rope" : "pteryx.linear_q8_rope");
  c.in(x).constant(norm).number(1e-5).constant(four ? w.nibbles(k / 2, true) : w.bytes());
  c.in(scales);
  if (four) c.integer(group);
  if (four) has_minimums ? c.in(minimums) : c.none();
  has_bias ? c.constant(bias) : c.none();
  c.in(cos).in(sin).live(start + 1);
  halves ? c.integer(1) : c.none();
  heads_normed ? c.constant(q_norm).constant(k_norm).number(1e-4) : c.none().none().none();
  c.in(keys).in(values).live(start);
  const std::vector<TestTensor> want = {y, new_keys, new_values};
  expect_op(c.out(DType::kF32, y.dims), want, quantised_tolerance(cache_type));
  if (rows > 8) expect_matrices(c, want, quantised_tolerance(DType::kF16), "matrix_few");
  if (!heads_normed) return;
  // Queries and caches by themselves.
  expect_route(c, "", want, quantised_tolerance(cache_type),
               [](gpu::Caps& caps) { caps.max_storage_buffers = 8; });
}

TEST(JoinedQLinear, QueriesKeysAndValuesAreTurnedAndKept) {
  check_rotated({1, 0, true, DType::kF32});
  check_rotated({1, 23, true, DType::kF16});
  check_rotated({5, 3, false, DType::kF16});
  check_rotated({12, 6, true, DType::kF32});
}

TEST(JoinedQLinear, PairsMayBeHalfAHeadApart) {
  check_rotated({1, 23, true, DType::kF16, true});
  check_rotated({5, 3, false, DType::kF32, true, false, true});
}

TEST(JoinedQLinear, HeadsOfQueriesAndKeysMayBeNormed) {
  check_rotated({1, 3, true, DType::kF32, true, true});
  check_rotated({9, 0, false, DType::kF16, false, true, true});
  // A workgroup makes a head; the second time in passes over k.
  check_rotated({1, 3, false, DType::kF16, true, true, false, 32});
  check_rotated({1, 5, true, DType::kF32, true, true, true, 128, 4128});
}

TEST(JoinedQLinear, GroupsOfQueriesKeysAndValuesHaveMinimums) {
  check_rotated({1, 23, true, DType::kF16, false, false, false, 8, 64, true});
  check_rotated({1, 3, true, DType::kF32, true, true, true, 32, 64, true});
  check_rotated({12, 6, true, DType::kF32, true, false, false, 8, 64, true});
}

TEST(JoinedQLinear, JoinedLayersMustShareAllColumns) {
  const TestTensor x = random(DType::kF32, {1, 32}, 1);
  const QuantisedWeight w(8, 32, -8, 7);
  const auto joined = [&](std::vector<int64_t> widths, std::vector<TestTensor> outs) {
    Case c("pteryx.linear_q4gsw");
    c.in(x).none().none().constant(w.nibbles(16, true)).in(random(DType::kF32, {1, 8}, 2));
    return std::move(c.integer(32)
                         .none()
                         .none()
                         .none()
                         .none()
                         .none()
                         .ints(std::move(widths))
                         .outs(std::move(outs)));
  };
  const TestTensor four{DType::kF32, {1, 4}, {}};
  expect_error(joined({4, 8}, {four, four}), "8 together, got [4, 8] for 2 results");
  expect_error(joined({4}, {four, four}), "got [4] for 2 results");
  expect_error(joined({6, 2}, {four, four}), "in multiples of 4");
}

}  // namespace
}  // namespace pteryx::ops::testing
