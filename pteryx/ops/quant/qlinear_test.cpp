// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/op_harness.h"
#include "pteryx/ops/testing/quantised_weight.h"

namespace pteryx::ops::testing {
namespace {

size_t at(int64_t i) { return static_cast<size_t>(i); }

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
  const QuantisedWeight w(g.n, g.k, -8, 7);
  const int64_t row = padded(g.n, g.blocks ? 8 : 4);
  const int64_t groups = g.k / g.group;
  const TestTensor scales = g.blocks ? random(DType::kF16, {row / 8, groups, 8}, 2, 0.01, 0.05)
                                     : random(g.type, {groups, row}, 2, 0.01, 0.05);
  const TestTensor bias = random(g.type, {row}, 3);
  const auto scale_at = [&](int64_t n, int64_t group) {
    return g.blocks ? (n / 8 * groups + group) * 8 + n % 8 : group * row + n;
  };
  const TestTensor want = quantised_reference(
      x, w, [&](int64_t n, int64_t k) { return scales.data[at(scale_at(n, k / g.group))]; },
      [&](int64_t n) { return g.bias ? bias.data[at(n)] : 0.0; }, g.type);
  Case c("et_vk.linear_q4gsw.default");
  c.in(x).constant(w.nibbles(padded(g.k, 8) / 2, true)).in(scales).integer(g.group);
  g.bias ? c.in(bias) : c.none();
  expect_op(c.out(g.type, want.dims), {want}, quantised_tolerance(g.type));
  if (g.matrices) expect_matrices(c, {want}, quantised_tolerance(DType::kF16));
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
  const QuantisedWeight w(n, k, -8, 7);
  const TestTensor scales = random(DType::kF32, {k / group, n}, 32, 0.01, 0.05);
  const TestTensor want = quantised_reference(
      x, w, [&](int64_t row, int64_t i) { return scales.data[at(i / group * n + row)]; }, no_bias,
      DType::kF32);
  Case c("et_vk.linear_q4gsw.default");
  c.in(x).constant(w.nibbles(k / 2, true)).in(scales).integer(group).none();
  expect_op(c.out(DType::kF32, want.dims), {want}, quantised_tolerance(DType::kF32));
  expect_op(c.precision(Precision::kF16), {want}, {6e-3, 1e-3});
}

// Rows of bytes that are no whole vectors can be laid out anew only if they are constant.
TEST(QLinear, WeightsThatTheGraphComputes) {
  for (const int64_t k : {32, 24}) {
    const TestTensor x = random(DType::kF32, {2, k}, 33, -1, 1);
    const QuantisedWeight w(5, k, -8, 7);
    const TestTensor scales = random(DType::kF32, {1, 8}, 34, 0.01, 0.05);
    const TestTensor want = quantised_reference(
        x, w, [&](int64_t row, int64_t) { return scales.data[at(row)]; }, no_bias, DType::kF32);
    expect_op(Case("et_vk.linear_q4gsw.default")
                  .in(x)
                  .in(w.nibbles(k / 2, true))
                  .in(scales)
                  .integer(k)
                  .none()
                  .out(DType::kF32, want.dims),
              {want}, quantised_tolerance(DType::kF32));
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
    const QuantisedWeight w(s.n, s.k, -8, 7);
    const TestTensor scales = random(DType::kF32, {s.n}, 5, 0.01, 0.05);
    const TestTensor want = quantised_reference(
        x, w, [&](int64_t n, int64_t) { return scales.data[at(n)]; }, no_bias, DType::kF32);
    expect_op(Case("et_vk.linear_qcs4w.default")
                  .in(x)
                  .constant(w.nibbles((s.k + 1) / 2, false))
                  .in(scales)
                  .out(DType::kF32, want.dims),
              {want}, quantised_tolerance(DType::kF32));
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
    const QuantisedWeight w(s.n, s.k, -128, 127);
    const TestTensor scales = random(s.type, {s.n}, 7, 0.001, 0.005);
    const TestTensor want = quantised_reference(
        x, w, [&](int64_t n, int64_t) { return scales.data[at(n)]; }, no_bias, s.type);
    Case c("aten._weight_int8pack_mm.default");
    c.in(x).constant(w.bytes()).in(scales).out(s.type, want.dims);
    expect_op(c, {want}, quantised_tolerance(s.type));
    if (s.leading[0] > 8) expect_matrices(c, {want}, quantised_tolerance(DType::kF16));
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
    const QuantisedWeight w(s.n, s.k, -128, 127);
    const int64_t columns = padded(s.n, 4);
    const TestTensor scales = random(DType::kF32, {columns}, 9, 0.001, 0.005);
    const TestTensor sums = make(DType::kI32, {columns}, [&](int64_t n) {
      double sum = 0;
      for (int64_t k = 0; n < s.n && k < s.k; ++k) sum += static_cast<double>(w.code(n, k));
      return sum;
    });
    const TestTensor bias = random(DType::kF32, {columns}, 10);
    TestTensor centred = x;
    for (double& v : centred.data) v -= static_cast<double>(s.zero);
    const TestTensor want = quantised_reference(
        centred, w, [&](int64_t n, int64_t) { return 0.02 * scales.data[at(n)]; },
        [&](int64_t n) { return s.bias ? bias.data[at(n)] : 0.0; }, DType::kF32);
    Case c("et_vk.linear_q8ta_q8csw.default");
    c.in(x).number(0.02).integer(s.zero).constant(w.bytes()).in(sums).in(scales);
    s.bias ? c.in(bias) : c.none();
    c.out(DType::kF32, want.dims);
    EXPECT_TRUE(is_fast(c));
    expect_op(c, {want}, {1e-4, 1e-5});
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
    const QuantisedWeight w(s.n, s.k, -8, 7);
    const int64_t columns = padded(s.n, 4);
    const TestTensor scales = random(DType::kF32, {s.k / s.group, columns}, 13, 0.01, 0.05);
    const TestTensor sums =
        make(DType::kI32, {s.k / s.group, padded(s.n, 8)}, [](int64_t) { return 0.0; });
    const TestTensor bias = random(DType::kF32, {columns}, 14);
    TestTensor rounded = x;
    for (size_t i = 0; i < rounded.data.size(); ++i) {
      const size_t m = i / at(s.k);
      const double code = std::clamp(
          std::nearbyint(x.data[i] / row_scale.data[m]) + row_zero.data[m], -128.0, 127.0);
      rounded.data[i] = (code - row_zero.data[m]) * row_scale.data[m];
    }
    const TestTensor want = quantised_reference(
        rounded, w,
        [&](int64_t n, int64_t k) { return scales.data[at(k / s.group * columns + n)]; },
        [&](int64_t n) { return s.bias ? bias.data[at(n)] : 0.0; }, DType::kF32);
    Case c("et_vk.linear_dq8ca_q4gsw.default");
    c.in(x)
        .in(row_scale)
        .in(row_zero)
        .constant(w.nibbles(padded(s.k, 8) / 2, true))
        .in(sums)
        .in(scales)
        .integer(s.group);
    s.bias ? c.in(bias) : c.none();
    expect_op(c.out(DType::kF32, want.dims), {want}, {1e-4, 2e-4});
  }
}

TEST(QLinear, Contradictions) {
  const TestTensor x = random(DType::kF32, {2, 16});
  const QuantisedWeight w(5, 16, -8, 7);
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
