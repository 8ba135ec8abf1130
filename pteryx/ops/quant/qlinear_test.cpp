// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

size_t at(int64_t i) { return static_cast<size_t>(i); }

// Codes of a weight, [n, k], and the ways to pack them.
struct Weight {
  int64_t n, k;
  std::vector<int64_t> codes;

  Weight(int64_t rows, int64_t columns, int64_t lo, int64_t hi) : n(rows), k(columns) {
    const TestTensor t =
        random(DType::kI32, {n, k}, 21, static_cast<double>(lo), static_cast<double>(hi));
    for (const double v : t.data) codes.push_back(static_cast<int64_t>(v));
  }
  int64_t code(int64_t row, int64_t column) const {
    return column < k ? codes[at(row * k + column)] : 0;
  }
  TestTensor bytes() const {
    return make(DType::kI8, {n, k}, [&](int64_t i) { return static_cast<double>(codes[at(i)]); });
  }
  TestTensor nibbles(int64_t row_bytes, bool low_first) const {
    return make(DType::kU8, {n, row_bytes}, [&](int64_t i) {
      const int64_t even = code(i / row_bytes, i % row_bytes * 2) + 8;
      const int64_t odd = code(i / row_bytes, i % row_bytes * 2 + 1) + 8;
      return static_cast<double>(low_first ? odd * 16 + even : even * 16 + odd);
    });
  }
};

// scale(n, k) and bias(n) are the test's.
TestTensor reference(const TestTensor& x, const Weight& w,
                     const std::function<double(int64_t, int64_t)>& scale,
                     const std::function<double(int64_t)>& bias, DType t) {
  Dims dims = x.dims;
  dims[dims.rank() - 1] = w.n;
  TestTensor y{t, dims, {}};
  for (int64_t m = 0; m < numel(dims) / std::max<int64_t>(w.n, 1); ++m) {
    for (int64_t n = 0; n < w.n; ++n) {
      double total = 0;
      for (int64_t k = 0; k < w.k; ++k) {
        total += x.data[at(m * w.k + k)] * static_cast<double>(w.code(n, k)) * scale(n, k);
      }
      y.data.push_back(total + bias(n));
    }
  }
  return y;
}
double no_bias(int64_t /*n*/) { return 0; }

Tolerance within(DType t) {
  return t == DType::kF16 ? Tolerance{2e-2, 3e-2} : Tolerance{1e-4, 1e-3};
}

int64_t pad(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

struct Grouped {
  Dims leading;
  int64_t k, n, group;
  bool bias = false;
  DType type = DType::kF32;
  bool matrices = false;
  bool blocks = false;  // of scales, in f16
};

void check_grouped(const Grouped& g) {
  Dims xd = g.leading;
  xd.push_back(g.k);
  const TestTensor x = random(g.type, xd, 1, -1, 1);
  const Weight w(g.n, g.k, -8, 7);
  const int64_t row = pad(g.n, g.blocks ? 8 : 4);
  const int64_t groups = g.k / g.group;
  const TestTensor scales = g.blocks ? random(DType::kF16, {row / 8, groups, 8}, 2, 0.01, 0.05)
                                     : random(g.type, {groups, row}, 2, 0.01, 0.05);
  const TestTensor bias = random(g.type, {row}, 3);
  const auto scale_at = [&](int64_t n, int64_t group) {
    return g.blocks ? (n / 8 * groups + group) * 8 + n % 8 : group * row + n;
  };
  const TestTensor want = reference(
      x, w, [&](int64_t n, int64_t k) { return scales.data[at(scale_at(n, k / g.group))]; },
      [&](int64_t n) { return g.bias ? bias.data[at(n)] : 0.0; }, g.type);
  Case c("et_vk.linear_q4gsw.default");
  c.in(x).constant(w.nibbles(pad(g.k, 8) / 2, true)).in(scales).integer(g.group);
  g.bias ? c.in(bias) : c.none();
  expect_op(c.out(g.type, want.dims), {want}, within(g.type));
  if (g.matrices) expect_matrices(c, {want}, within(DType::kF16));
}

// Sizes are chosen for the texts they lead to: 16, 4 or 1 bytes of weights at a time, fours of x or
// not, each route.
TEST(QLinear, GroupsOfFourBitCodes) {
  check_grouped({{1, 1}, 256, 64, 64});
  check_grouped({{1, 3}, 288, 36, 32, true});
  check_grouped({{1, 2}, 1024, 10, 128});
  check_grouped({{3}, 12, 5, 4});
  check_grouped({{}, 24, 3, 8, true});
  check_grouped({{2, 2, 2}, 7, 33, 7, true});
  check_grouped({{9}, 6, 5, 3});
}

// Several layers in one, whose columns go to as many results; or one with something added, or
// gated.
struct Joined {
  int64_t m, k;
  std::vector<int64_t> widths;
  bool four = true;
  DType type = DType::kF32;
  bool norm = false;
  bool gated = false;
};

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
  const auto [m, k, widths, four, t, norm, gate] = j;
  const int64_t n = std::accumulate(widths.begin(), widths.end(), int64_t{0}) * (gate ? 2 : 1);
  const int64_t group = four ? 32 : k;
  const TestTensor x = random(t, {1, m, k}, 1, -1, 1);
  const TestTensor norm_weight = random(t, {k}, 7, 0.5, 1.5);
  const Weight w(n, k, four ? -8 : -100, four ? 7 : 100);
  const TestTensor scales =
      random(t, four ? Dims{k / group, n} : Dims{n}, 2, four ? 0.01 : 0.001, four ? 0.05 : 0.003);
  const bool adds = widths.size() == 1 && !gate;
  const TestTensor residual = random(t, {m, n}, 5);
  TestTensor whole = reference(
      norm ? normalised(x, norm_weight, 1e-5) : x, w,
      [&](int64_t row, int64_t column) { return scales.data[at(column / group * n + row)]; },
      no_bias, t);
  Case c(four ? "pteryx.linear_q4gsw" : "pteryx.linear_q8");
  c.in(x);
  norm ? c.constant(norm_weight).number(1e-5) : c.none().none();
  c.constant(four ? w.nibbles(k / 2, true) : w.bytes()).in(scales);
  if (four) c.integer(group);
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
  expect_op(c.outs(want), want, within(t));
  // Of few rows the route for them; the others run on those of many.
  if (m > 8) expect_matrices(c, want, within(DType::kF16), m < 16 ? "matrix_few" : "");
}

TEST(QLinear, JoinedLayersHaveTheColumnsOfEach) {
  check_joined({1, 64, {64, 32, 32}, true, DType::kF32});
  check_joined({40, 64, {40, 4, 24}, true, DType::kF32});
  check_joined({9, 2048, {64, 72, 4}, true, DType::kF32});  // k is cut
  check_joined({3, 96, {8, 36}, false, DType::kF16});
}

TEST(QLinear, ALayerTakesTheAdditionBehindIt) {
  check_joined({1, 64, {33}, true, DType::kF32});
  check_joined({40, 64, {36}, true, DType::kF32});
  check_joined({9, 2048, {32}, true, DType::kF32});
  check_joined({2, 96, {10}, false, DType::kF16});
}

TEST(QLinear, ALayerTakesTheNormBeforeIt) {
  check_joined({1, 64, {32, 16, 16}, true, DType::kF32, true});
  check_joined({1, 2080, {8}, true, DType::kF32, true});
  check_joined({3, 96, {12}, false, DType::kF16, true});
  check_joined({12, 64, {36}, true, DType::kF32, true});
}

TEST(QLinear, ALayerTakesTheGateBehindIt) {
  check_joined({1, 64, {36}, true, DType::kF32, true, true});
  check_joined({1, 96, {12}, false, DType::kF16, false, true});
  check_joined({4, 64, {8}, true, DType::kF32, true, true});
  check_joined({7, 64, {8}, true, DType::kF32, true, true});
  check_joined({12, 64, {40}, true, DType::kF32, false, true});
}

TEST(QLinear, ALayerTakesTheLastRow) {
  constexpr int64_t kK = 64;
  constexpr int64_t kN = 36;
  for (const int64_t rows : {1, 5}) {
    const TestTensor x = random(DType::kF32, {1, rows, kK}, 1, -1, 1);
    const TestTensor last =
        make(DType::kF32, {1, kK}, [&](int64_t i) { return x.data[at((rows - 1) * kK + i)]; });
    const TestTensor norm = random(DType::kF32, {kK}, 7, 0.5, 1.5);
    const Weight w(kN, kK, -100, 100);
    const TestTensor scales = random(DType::kF32, {kN}, 2, 0.001, 0.003);
    const TestTensor want = reference(
        normalised(last, norm, 1e-5), w, [&](int64_t n, int64_t) { return scales.data[at(n)]; },
        no_bias, DType::kF32);
    Case c("pteryx.linear_q8");
    c.in(x).constant(norm).number(1e-5).constant(w.bytes()).in(scales).none().none().none();
    c.integer(1).ints({kN});
    expect_op(c.outs({want}), {want}, within(DType::kF32));
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
};

// Queries, keys and values: the first two turned, the others where they belong in the caches.
void check_rotated(const Rotated& r) {
  const auto [rows, start, four, cache_type, halves, heads_normed, has_bias, size, k] = r;
  constexpr int64_t kHeads = 3;
  constexpr int64_t kvHeads = 2;
  constexpr int64_t kCapacity = 24;
  const int64_t queries = kHeads * size;
  const int64_t kv = kvHeads * size;
  const int64_t n = queries + 2 * kv;
  const int64_t group = four ? 32 : k;
  const TestTensor x = random(DType::kF32, {1, rows, k}, 1, -1, 1);
  const TestTensor norm = random(DType::kF32, {k}, 7, 0.5, 1.5);
  const Weight w(n, k, four ? -8 : -100, four ? 7 : 100);
  const TestTensor scales = random(DType::kF32, four ? Dims{k / group, n} : Dims{n}, 2,
                                   four ? 0.01 : 0.001, four ? 0.05 : 0.003);
  const int64_t table_width = halves ? size : size / 2;
  const TestTensor cos = random(DType::kF32, {kCapacity + 1, table_width}, 11, -1, 1);
  const TestTensor sin = random(DType::kF32, {kCapacity + 1, table_width}, 12, -1, 1);
  const TestTensor q_norm = random(DType::kF32, {size}, 15, 0.5, 1.5);
  const TestTensor k_norm = random(DType::kF32, {size}, 16, 0.5, 1.5);
  const TestTensor bias = random(DType::kF32, {n}, 17, -1, 1);
  const TestTensor keys = random(cache_type, {1, kCapacity, kvHeads, size}, 13);
  const TestTensor values = random(cache_type, {1, kCapacity, kvHeads, size}, 14);
  TestTensor sums = reference(
      normalised(x, norm, 1e-5), w,
      [&](int64_t row, int64_t column) { return scales.data[at(column / group * n + row)]; },
      [&](int64_t j) { return has_bias ? bias.data[at(j)] : 0.0; }, DType::kF32);
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
  has_bias ? c.constant(bias) : c.none();
  c.in(cos).in(sin).live(start + 1);
  halves ? c.integer(1) : c.none();
  heads_normed ? c.constant(q_norm).constant(k_norm).number(1e-4) : c.none().none().none();
  c.in(keys).in(values).live(start);
  const std::vector<TestTensor> want = {y, new_keys, new_values};
  expect_op(c.out(DType::kF32, y.dims), want, within(cache_type));
  if (rows > 8) expect_matrices(c, want, within(DType::kF16), "matrix_few");
}

TEST(QLinear, QueriesKeysAndValuesAreTurnedAndKept) {
  check_rotated({1, 0, true, DType::kF32});
  check_rotated({1, 23, true, DType::kF16});
  check_rotated({5, 3, false, DType::kF16});
  check_rotated({12, 6, true, DType::kF32});
}

TEST(QLinear, PairsMayBeHalfAHeadApart) {
  check_rotated({1, 23, true, DType::kF16, true});
  check_rotated({5, 3, false, DType::kF32, true, false, true});
}

TEST(QLinear, HeadsOfQueriesAndKeysMayBeNormed) {
  check_rotated({1, 3, true, DType::kF32, true, true});
  check_rotated({9, 0, false, DType::kF16, false, true, true});
  // A workgroup makes a head; the second time in passes over k.
  check_rotated({1, 3, false, DType::kF16, true, true, false, 32});
  check_rotated({1, 5, true, DType::kF32, true, true, true, 128, 4128});
}

TEST(QLinear, JoinedLayersMustShareAllColumns) {
  const TestTensor x = random(DType::kF32, {1, 32}, 1);
  const Weight w(8, 32, -8, 7);
  const auto joined = [&](std::vector<int64_t> widths, std::vector<TestTensor> outs) {
    Case c("pteryx.linear_q4gsw");
    c.in(x).none().none().constant(w.nibbles(16, true)).in(random(DType::kF32, {1, 8}, 2));
    return std::move(
        c.integer(32).none().none().none().none().ints(std::move(widths)).outs(std::move(outs)));
  };
  const TestTensor four{DType::kF32, {1, 4}, {}};
  expect_error(joined({4, 8}, {four, four}), "8 together, got [4, 8] for 2 results");
  expect_error(joined({4}, {four, four}), "got [4] for 2 results");
  expect_error(joined({6, 2}, {four, four}), "in multiples of 4");
}

TEST(QLinear, ManyRows) {
  check_grouped({{70}, 96, 136, 32});
  check_grouped({{33}, 72, 34, 8, true, DType::kF32, true, true});
  check_grouped({{20}, 2048, 12, 64, true, DType::kF32, true, true});
}

// Every size of a tile, a unit and a group left over somewhere.
TEST(QLinear, Tails) {
  check_grouped({{1}, 4, 1, 4});
  check_grouped({{2}, 12, 5, 4});
  check_grouped({{3}, 40, 33, 8});
  check_grouped({{4}, 100, 130, 100});
  check_grouped({{5}, 288, 33, 32, false, DType::kF32, false, true});
  check_grouped({{6}, 2560, 5, 64});
  check_grouped({{7}, 288, 130, 288});
  check_grouped({{8}, 40, 1, 40});
  check_grouped({{9}, 100, 33, 4, true});
  check_grouped({{17}, 288, 130, 32, true, DType::kF32, false, true});
  check_grouped({{130}, 12, 5, 12});
}

// One activation in 32 is twenty times as large as the rest.
TEST(QLinear, Outliers) {
  const int64_t k = 2048;
  const int64_t n = 64;
  const int64_t group = 64;
  TestTensor x = random(DType::kF32, {2, k}, 31, -1, 1);
  for (size_t i = 5; i < x.data.size(); i += 32) x.data[i] *= 20;
  x = round_to(x, DType::kF32);
  const Weight w(n, k, -8, 7);
  const TestTensor scales = random(DType::kF32, {k / group, n}, 32, 0.01, 0.05);
  const TestTensor want = reference(
      x, w, [&](int64_t row, int64_t i) { return scales.data[at(i / group * n + row)]; }, no_bias,
      DType::kF32);
  Case c("et_vk.linear_q4gsw.default");
  c.in(x).constant(w.nibbles(k / 2, true)).in(scales).integer(group).none();
  expect_op(c.out(DType::kF32, want.dims), {want}, within(DType::kF32));
  expect_op(c.precision(Precision::kF16), {want}, {6e-3, 1e-3});
}

// Rows of bytes that are no whole vectors can be laid out anew only if they are constant.
TEST(QLinear, WeightsThatTheGraphComputes) {
  for (const int64_t k : {32, 24}) {
    const TestTensor x = random(DType::kF32, {2, k}, 33, -1, 1);
    const Weight w(5, k, -8, 7);
    const TestTensor scales = random(DType::kF32, {1, 8}, 34, 0.01, 0.05);
    const TestTensor want = reference(
        x, w, [&](int64_t row, int64_t) { return scales.data[at(row)]; }, no_bias, DType::kF32);
    expect_op(Case("et_vk.linear_q4gsw.default")
                  .in(x)
                  .in(w.nibbles(k / 2, true))
                  .in(scales)
                  .integer(k)
                  .none()
                  .out(DType::kF32, want.dims),
              {want}, within(DType::kF32));
  }
}

// So many that the route of integer products has eight at a time, with one load of their scales.
TEST(QLinear, ManyColumns) { check_grouped({{1}, 32, 70000, 32, false, DType::kF32, false, true}); }

TEST(QLinear, Halves) {
  check_grouped({{1, 2}, 64, 12, 32, true, DType::kF16});
  check_grouped({{9}, 64, 33, 16, true, DType::kF16});
  check_grouped({{1}, 10, 7, 5, false, DType::kF16});
}

TEST(QLinear, Empty) { check_grouped({{1, 0}, 32, 8, 32, true}); }

TEST(QLinear, ChannelsOfFourBitCodes) {
  struct Size {
    int64_t m, k, n;
  };
  for (const Size& s : {Size{1, 256, 64}, Size{2, 7, 3}, Size{33, 130, 10}, Size{1, 8, 5}}) {
    const TestTensor x = random(DType::kF32, {s.m, s.k}, 4, -1, 1);
    const Weight w(s.n, s.k, -8, 7);
    const TestTensor scales = random(DType::kF32, {s.n}, 5, 0.01, 0.05);
    const TestTensor want = reference(
        x, w, [&](int64_t n, int64_t) { return scales.data[at(n)]; }, no_bias, DType::kF32);
    expect_op(Case("et_vk.linear_qcs4w.default")
                  .in(x)
                  .constant(w.nibbles((s.k + 1) / 2, false))
                  .in(scales)
                  .out(DType::kF32, want.dims),
              {want}, within(DType::kF32));
  }
}

TEST(QLinear, ChannelsOfBytes) {
  struct Size {
    Dims leading;
    int64_t k, n;
    DType type;
  };
  for (const Size& s : {Size{{1}, 512, 64, DType::kF32}, Size{{2}, 6, 5, DType::kF32},
                        Size{{17}, 64, 33, DType::kF32}, Size{{1, 2}, 12, 7, DType::kF32},
                        Size{{1}, 32, 8, DType::kF16}}) {
    Dims xd = s.leading;
    xd.push_back(s.k);
    const TestTensor x = random(s.type, xd, 6, -1, 1);
    const Weight w(s.n, s.k, -128, 127);
    const TestTensor scales = random(s.type, {s.n}, 7, 0.001, 0.005);
    const TestTensor want =
        reference(x, w, [&](int64_t n, int64_t) { return scales.data[at(n)]; }, no_bias, s.type);
    Case c("aten._weight_int8pack_mm.default");
    c.in(x).constant(w.bytes()).in(scales).out(s.type, want.dims);
    expect_op(c, {want}, within(s.type));
    if (s.leading[0] > 8) expect_matrices(c, {want}, within(DType::kF16));
  }
}

TEST(QLinear, CodesTimesCodes) {
  struct Size {
    int64_t m, k, n, zero;
    bool bias;
  };
  for (const Size& s :
       {Size{1, 4, 1, 0, false}, Size{2, 36, 5, -128, true}, Size{1, 64, 8, 17, false},
        Size{3, 1000, 33, 17, true}, Size{12, 7, 5, -3, true}}) {
    const TestTensor x = random(DType::kI8, {1, s.m, s.k}, 8, -128, 127);
    const Weight w(s.n, s.k, -128, 127);
    const int64_t padded = pad(s.n, 4);
    const TestTensor scales = random(DType::kF32, {padded}, 9, 0.001, 0.005);
    const TestTensor sums = make(DType::kI32, {padded}, [&](int64_t n) {
      double sum = 0;
      for (int64_t k = 0; n < s.n && k < s.k; ++k) sum += static_cast<double>(w.code(n, k));
      return sum;
    });
    const TestTensor bias = random(DType::kF32, {padded}, 10);
    TestTensor centred = x;
    for (double& v : centred.data) v -= static_cast<double>(s.zero);
    const TestTensor want = reference(
        centred, w, [&](int64_t n, int64_t) { return 0.02 * scales.data[at(n)]; },
        [&](int64_t n) { return s.bias ? bias.data[at(n)] : 0.0; }, DType::kF32);
    Case c("et_vk.linear_q8ta_q8csw.default");
    c.in(x).number(0.02).integer(s.zero).constant(w.bytes()).in(sums).in(scales);
    s.bias ? c.in(bias) : c.none();
    expect_op(c.out(DType::kF32, want.dims), {want}, {1e-4, 1e-5});
  }
}

// Scales are powers of two and x keeps away from ties, so that every device rounds to the same
// codes.
TEST(QLinear, RowsRoundedToCodes) {
  struct Size {
    int64_t rows, k, n, group;
    bool bias;
  };
  for (const Size& s : {Size{1, 64, 36, 32, true}, Size{2, 12, 5, 4, false},
                        Size{1, 32, 10, 8, false}, Size{37, 64, 40, 32, true}}) {
    const TestTensor row_scale =
        make(DType::kF32, {1, s.rows}, [](int64_t i) { return i % 2 == 0 ? 0.015625 : 0.0078125; });
    const TestTensor row_zero = random(DType::kI8, {1, s.rows}, 11, -128, 127);
    const TestTensor noise = random(DType::kF32, {1, s.rows, s.k}, 12, -150, 150);
    const TestTensor x = make(DType::kF32, noise.dims, [&](int64_t i) {
      const double v = noise.data[at(i)];
      return (std::round(v) + 0.75 * (v - std::round(v))) * row_scale.data[at(i / s.k)];
    });
    const Weight w(s.n, s.k, -8, 7);
    const int64_t padded = pad(s.n, 4);
    const TestTensor scales = random(DType::kF32, {s.k / s.group, padded}, 13, 0.01, 0.05);
    const TestTensor sums =
        make(DType::kI32, {s.k / s.group, pad(s.n, 8)}, [](int64_t) { return 0.0; });
    const TestTensor bias = random(DType::kF32, {padded}, 14);
    TestTensor rounded = x;
    for (size_t i = 0; i < rounded.data.size(); ++i) {
      const size_t m = i / at(s.k);
      const double code = std::clamp(
          std::nearbyint(x.data[i] / row_scale.data[m]) + row_zero.data[m], -128.0, 127.0);
      rounded.data[i] = (code - row_zero.data[m]) * row_scale.data[m];
    }
    const TestTensor want = reference(
        rounded, w, [&](int64_t n, int64_t k) { return scales.data[at(k / s.group * padded + n)]; },
        [&](int64_t n) { return s.bias ? bias.data[at(n)] : 0.0; }, DType::kF32);
    Case c("et_vk.linear_dq8ca_q4gsw.default");
    c.in(x)
        .in(row_scale)
        .in(row_zero)
        .constant(w.nibbles(pad(s.k, 8) / 2, true))
        .in(sums)
        .in(scales)
        .integer(s.group);
    s.bias ? c.in(bias) : c.none();
    expect_op(c.out(DType::kF32, want.dims), {want}, {1e-4, 2e-4});
  }
}

TEST(QLinear, Contradictions) {
  const TestTensor x = random(DType::kF32, {2, 16});
  const Weight w(5, 16, -8, 7);
  const auto call = [&](const TestTensor& weight, const TestTensor& scales, int64_t group) {
    return Case("et_vk.linear_q4gsw.default")
        .in(x)
        .in(weight)
        .in(scales)
        .integer(group)
        .none()
        .out(DType::kF32, {2, 5});
  };
  const TestTensor weight = w.nibbles(8, true);
  const TestTensor scales = random(DType::kF32, {2, 8});
  expect_error(call(weight, scales, 6), "group_size 6 does not divide the 16 columns of x");
  expect_error(call(weight, scales, 0), "group_size 0");
  expect_error(call(weight, scales, 4),
               "scales (value 2) shape: expected at least [4, 5], got [2, 8]");
  expect_error(call(weight, random(DType::kF32, {2, 4}), 8),
               "expected at least [2, 5], got [2, 4]");
  expect_error(call(random(DType::kU8, {5, 7}, 1, 0, 255), scales, 8),
               "weight (value 1) shape: expected rows of 16 codes for x [2, 16], got [5, 7]");
  expect_error(Case("et_vk.linear_q4gsw.default")
                   .in(x)
                   .in(weight)
                   .in(scales)
                   .integer(8)
                   .in(random(DType::kF32, {4}))
                   .out(DType::kF32, {2, 5}),
               "bias (value 4) shape: expected at least 5 elements, got [4]");
  expect_error(Case("aten._weight_int8pack_mm.default")
                   .in(x)
                   .in(random(DType::kI8, {5, 15}, 1, -9, 9))
                   .in(random(DType::kF32, {5}))
                   .out(DType::kF32, {2, 5}),
               "rows of 16 codes");
}

}  // namespace
}  // namespace pteryx::ops::testing
