// Rotary embeddings against the formula in double. SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

constexpr Tolerance kRope{1e-6, 1e-6};
constexpr Tolerance kHalfRope{1e-3, 2e-3};
Tolerance rope_tolerance(DType t) { return t == DType::kF16 ? kHalfRope : kRope; }

size_t at(int64_t i) { return static_cast<size_t>(i); }

// x is [B, S, H, D]; the pair (a, b) of row s becomes (a c - b n, a n' + b c').
TestTensor adjacent(const TestTensor& x, const TestTensor& cos, const TestTensor& sin) {
  TestTensor y = x;
  const int64_t half = x.dims[3] / 2;
  for (int64_t p = 0; p < numel(x.dims) / 2; ++p) {
    const int64_t s = p / half / x.dims[2] % x.dims[1];
    const double c = cos.data[at(s * half + p % half)];
    const double n = sin.data[at(s * half + p % half)];
    y.data[at(2 * p)] = x.data[at(2 * p)] * c - x.data[at(2 * p + 1)] * n;
    y.data[at(2 * p + 1)] = x.data[at(2 * p)] * n + x.data[at(2 * p + 1)] * c;
  }
  return y;
}

TestTensor halves(const TestTensor& x, const TestTensor& cos, const TestTensor& sin,
                  int64_t start) {
  TestTensor y = x;
  const int64_t size = x.dims[3];
  const int64_t width = cos.dims[1];
  const int64_t half = width / 2;
  for (int64_t row = 0; row < numel(x.dims) / size; ++row) {
    const int64_t table = (start + row / x.dims[2] % x.dims[1]) * width;
    for (int64_t i = 0; i < half; ++i) {
      const double a = x.data[at(row * size + i)];
      const double b = x.data[at(row * size + i + half)];
      y.data[at(row * size + i)] = a * cos.data[at(table + i)] - b * sin.data[at(table + i)];
      y.data[at(row * size + i + half)] =
          b * cos.data[at(table + i + half)] + a * sin.data[at(table + i + half)];
    }
  }
  return y;
}

TEST(Rope, AdjacentPairs) {
  struct Shape {
    int64_t b, s, hq, hk, d;
  };
  for (const DType t : {DType::kF32, DType::kF16}) {
    for (const auto& [b, s, hq, hk, d] : std::vector<Shape>{{1, 5, 8, 2, 64},
                                                            {1, 1, 32, 8, 64},
                                                            {1, 1, 24, 8, 128},
                                                            {1, 7, 3, 1, 6},
                                                            {2, 3, 6, 6, 48},
                                                            {1, 3, 1, 1, 2}}) {
      const TestTensor q = random(t, {b, s, hq, d}, 1);
      const TestTensor k = random(t, {b, s, hk, d}, 2);
      // More rows than positions: only `>=` is asked.
      const TestTensor cos = random(t, {s + 1, d / 2}, 3, -1, 1);
      const TestTensor sin = random(t, {s + 1, d / 2}, 4, -1, 1);
      expect_op(Case("et_vk.apply_rotary_emb.default").in(q).in(k).in(cos).in(sin).outs({q, k}),
                {adjacent(q, cos, sin), adjacent(k, cos, sin)}, rope_tolerance(t));
    }
  }
}

TEST(Rope, Halves) {
  struct Shape {
    int64_t s, hq, hk, d, r, start, rows;
  };
  for (const DType t : {DType::kF32, DType::kF16}) {
    for (const auto& [s, hq, hk, d, r, start, rows] : std::vector<Shape>{{5, 4, 2, 32, 32, 0, 5},
                                                                         {1, 16, 8, 128, 128, 7, 9},
                                                                         {3, 3, 1, 32, 24, 2, 5},
                                                                         {2, 2, 2, 96, 72, 0, 64},
                                                                         {1, 2, 1, 6, 2, 8, 9}}) {
      const TestTensor q = random(t, {1, s, hq, d}, 1);
      const TestTensor k = random(t, {1, s, hk, d}, 2);
      const TestTensor cos = random(t, {rows, r}, 3, -1, 1);
      const TestTensor sin = random(t, {rows, r}, 4, -1, 1);
      const auto make_case = [&] {
        return Case("et_vk.apply_rotary_emb_hf.default").in(q).in(k).in(cos).in(sin);
      };
      const std::vector<TestTensor> want = {halves(q, cos, sin, start), halves(k, cos, sin, start)};
      expect_op(make_case().integer(start).outs({q, k}), want, rope_tolerance(t));
      expect_op(make_case().live(start).outs({q, k}), want, rope_tolerance(t));
    }
  }
}

TEST(Rope, Interleaved) {
  for (const DType t : {DType::kF32, DType::kF16}) {
    const TestTensor x = random(t, {2, 5, 6}, 1);
    const TestTensor freqs = random(t, {1, 5, 3, 2}, 2, -1, 1);
    TestTensor want = x;
    for (int64_t p = 0; p < 30; ++p) {
      const double c = freqs.data[at(p % 15 * 2)];
      const double n = freqs.data[at(p % 15 * 2 + 1)];
      want.data[at(2 * p)] = x.data[at(2 * p)] * c - x.data[at(2 * p + 1)] * n;
      want.data[at(2 * p + 1)] = x.data[at(2 * p)] * n + x.data[at(2 * p + 1)] * c;
    }
    expect_op(Case("et_vk.apply_rotary_emb_interleaved.default").in(x).in(freqs).out(t, {2, 5, 6}),
              {want}, rope_tolerance(t));
  }
}

TEST(Rope, VectorsOfTheCpuTakeEveryLayout) {
  for (const DType t : {DType::kF32, DType::kF16}) {
    const TestTensor x = random(t, {1, 300, 3, 64}, 1);
    const TestTensor half = random(t, {307, 32}, 2, -1, 1);
    const TestTensor part = random(t, {307, 48}, 3, -1, 1);
    EXPECT_TRUE(
        is_fast(Case("et_vk.apply_rotary_emb.default").in(x).in(x).in(half).in(half).outs({x, x})));
    EXPECT_TRUE(is_fast(Case("et_vk.apply_rotary_emb_hf.default")
                            .in(x)
                            .in(x)
                            .in(part)
                            .in(part)
                            .integer(7)
                            .outs({x, x})));
    EXPECT_TRUE(is_fast(Case("et_vk.apply_rotary_emb_interleaved.default")
                            .in(x)
                            .in(random(t, {3, 64}, 4))
                            .out(t, x.dims)));
  }
}

// Element (position, head, d) of a batch turned by row table(batch, position, head) of the tables;
// x is [batch, length, heads, size] or, with heads first, [batch, heads, length, size]. The pair of
// element d is (first, second), each turned by its own column.
struct Turned {
  bool heads_first = false;
  bool halves = true;
};
TestTensor turned(const Turned& how, const TestTensor& x, const TestTensor& cos,
                  const TestTensor& sin,
                  const std::function<int64_t(int64_t, int64_t, int64_t)>& table) {
  TestTensor y = x;
  const auto back = [&](size_t i) { return x.dims[x.dims.rank() - i]; };
  const int64_t size = back(1);
  const int64_t heads = how.heads_first ? back(3) : back(2);
  const int64_t length = how.heads_first ? back(2) : back(3);
  const int64_t width = cos.dims[cos.dims.rank() - 1];
  const int64_t pairs = how.halves ? width / 2 : width;
  for (int64_t row = 0; row < numel(x.dims) / size; ++row) {
    const int64_t s = how.heads_first ? row % length : row / heads % length;
    const int64_t h = how.heads_first ? row / length % heads : row % heads;
    const int64_t t = table(row / (heads * length), s, h) * width;
    for (int64_t i = 0; i < pairs; ++i) {
      const int64_t first = row * size + (how.halves ? i : 2 * i);
      const int64_t second = row * size + (how.halves ? i + pairs : 2 * i + 1);
      const int64_t other = how.halves ? i + pairs : i;
      y.data[at(first)] =
          x.data[at(first)] * cos.data[at(t + i)] - x.data[at(second)] * sin.data[at(t + i)];
      y.data[at(second)] = x.data[at(second)] * cos.data[at(t + other)] +
                           x.data[at(first)] * sin.data[at(t + other)];
    }
  }
  return y;
}

// A call with x and tables of any layout, at a literal and a live position.
void expect_turned(const Turned& how, const Dims& q_dims, const Dims& k_dims, const Dims& table,
                   int64_t start,
                   const std::function<int64_t(int64_t, int64_t, int64_t)>& table_row) {
  for (const DType t : {DType::kF32, DType::kF16}) {
    const TestTensor q = random(t, q_dims, 1);
    const TestTensor k = random(t, k_dims, 2);
    const TestTensor cos = random(t, table, 3, -1, 1);
    const TestTensor sin = random(t, table, 4, -1, 1);
    const std::vector<TestTensor> want = {turned(how, q, cos, sin, table_row),
                                          turned(how, k, cos, sin, table_row)};
    const auto call = [&](bool constant) {
      Case c(how.halves ? "et_vk.apply_rotary_emb_hf.default" : "et_vk.apply_rotary_emb.default");
      c.in(q).in(k);
      constant ? c.constant(cos).constant(sin) : c.in(cos).in(sin);
      return c;
    };
    if (!how.halves) {
      expect_op(call(true).outs({q, k}), want, rope_tolerance(t));
      continue;
    }
    expect_op(call(false).integer(start).outs({q, k}), want, rope_tolerance(t));
    expect_op(call(true).live(start).outs({q, k}), want, rope_tolerance(t));
  }
}

// Phi and GPT-NeoX: the tables are [batch, position, width] and are given a dim for the heads, so x
// is [batch, heads, length, size].
TEST(Rope, HeadsFirst) {
  const Turned how{.heads_first = true};
  const auto row = [](int64_t start) {
    return [start](int64_t, int64_t s, int64_t) { return start + s; };
  };
  expect_turned(how, {1, 4, 5, 32}, {1, 2, 5, 32}, {1, 5, 32}, 0, row(0));
  expect_turned(how, {1, 32, 3, 80}, {1, 32, 3, 80}, {1, 9, 32}, 4, row(4));  // Phi-2
  expect_turned(how, {2, 3, 4, 96}, {2, 1, 4, 96}, {1, 4, 24}, 0, row(0));    // GPT-NeoX
  expect_turned(how, {1, 8, 1, 64}, {1, 2, 1, 64}, {1, 1, 16}, 0, row(0));
  expect_turned(how, {3, 5, 7}, {2, 5, 7}, {1, 6, 6}, 1, row(1));
  expect_turned(how, {1, 3, 5, 6}, {1, 2, 5, 6}, {1, 1, 8, 4}, 2, row(2));
  // A table for every batch.
  expect_turned(how, {2, 3, 4, 8}, {2, 2, 4, 8}, {2, 6, 4}, 1,
                [](int64_t b, int64_t s, int64_t) { return b * 6 + 1 + s; });
  expect_turned(how, {2, 3, 1, 8}, {2, 2, 1, 8}, {2, 1, 4}, 0,
                [](int64_t b, int64_t, int64_t) { return b; });
}

TEST(Rope, RanksAndUnitDims) {
  const auto row = [](int64_t start) {
    return [start](int64_t, int64_t s, int64_t) { return start + s; };
  };
  for (const bool halves : {false, true}) {
    const Turned how{.halves = halves};
    const int64_t width = halves ? 8 : 4;
    expect_turned(how, {5, 4, 8}, {5, 2, 8}, {5, width}, 0, row(0));
    expect_turned(how, {2, 3, 4, 8}, {2, 3, 1, 8}, {1, 3, 1, width}, 0, row(0));
    expect_turned(how, {2, 1, 4, 8}, {2, 1, 3, 8}, {1, 1, 1, width}, 0, row(0));
    expect_turned(how, {2, 3, 4, 8}, {2, 3, 1, 8}, {2, 3, 1, width}, 0,
                  [](int64_t b, int64_t s, int64_t) { return b * 3 + s; });
  }
  const Turned adjacent_pairs{.halves = false};
  expect_turned(adjacent_pairs, {2, 3, 4, 8}, {2, 3, 2, 8}, {3, 1, 4}, 0, row(0));
  expect_turned(adjacent_pairs, {2, 3, 4, 8}, {2, 3, 2, 8}, {1, 3, 4}, 0, row(0));
  // A row for every head.
  const auto each = [](int64_t, int64_t s, int64_t h) { return s * 4 + h; };
  expect_turned(adjacent_pairs, {2, 3, 4, 8}, {2, 3, 4, 8}, {3, 4, 4}, 0, each);
  expect_turned(adjacent_pairs, {3, 4, 8}, {3, 4, 8}, {5, 4, 4}, 0, each);
}

TEST(Rope, EmptySequence) {
  const TestTensor q = random(DType::kF32, {1, 0, 4, 8});
  const TestTensor table = random(DType::kF32, {3, 4});
  expect_op(Case("et_vk.apply_rotary_emb.default").in(q).in(q).in(table).in(table).outs({q, q}),
            {q, q}, kExact);
}

// A call of either operator with tables of their own.
Case adjacent_case(const Dims& q, const Dims& k, const Dims& cos, const Dims& sin) {
  const auto t = [](const Dims& d) { return random(DType::kF32, d); };
  return Case("et_vk.apply_rotary_emb.default")
      .in(t(q))
      .in(t(k))
      .in(t(cos))
      .in(t(sin))
      .outs({t(q), t(k)});
}

Case halves_case(const Dims& q, const Dims& table, int64_t start) {
  const auto t = [](const Dims& d) { return random(DType::kF32, d); };
  return Case("et_vk.apply_rotary_emb_hf.default")
      .in(t(q))
      .in(t(q))
      .in(t(table))
      .in(t(table))
      .live(start)
      .outs({t(q), t(q)});
}

TEST(Rope, Refuses) {
  expect_error(adjacent_case({1, 3, 4, 8}, {1, 2, 4, 8}, {3, 4}, {3, 4}),
               "xk (value 1) shape: expected [1, 3, 4, 8], got [1, 2, 4, 8]");
  expect_error(adjacent_case({1, 3, 4, 8}, {1, 3, 4, 8}, {2, 4}, {2, 4}),
               "start_pos 0 + 3 positions exceed the 2 rows of freqs_cos");
  expect_error(adjacent_case({1, 3, 4, 8}, {1, 3, 4, 8}, {3, 4}, {4, 4}),
               "freqs_sin (value 3) shape: expected [3, 4], got [4, 4]");
  expect_error(adjacent_case({1, 3, 4, 8}, {1, 3, 4, 8}, {3, 3}, {3, 3}),
               "freqs_cos (value 2) width: expected 4, got 3");
  expect_error(adjacent_case({1, 3, 4, 7}, {1, 3, 4, 7}, {3, 3}, {3, 3}),
               "xq (value 0) width: expected an even number, got 7");
  expect_error(halves_case({1, 3, 4, 8}, {9, 8}, 7),
               "start_pos 7 + 3 positions exceed the 9 rows of freqs_cos");
  expect_error(halves_case({1, 3, 4, 8}, {9, 8}, -1), "start_pos: expected 0 or more, got -1");
  expect_error(halves_case({1, 3, 4, 8}, {9, 10}, 0),
               "freqs_cos (value 2) width: expected an even number up to 8, got 10");
  expect_error(adjacent_case({2, 3, 4, 8}, {2, 3, 2, 8}, {3, 4, 4}, {3, 4, 4}),
               "freqs_cos (value 2) shape: expected [3, 1, 4], got [3, 4, 4]");
  expect_error(adjacent_case({2, 3, 4, 8}, {3, 4, 8}, {3, 4}, {3, 4}),
               "xk (value 1) shape: expected [2, 3, 4, 8], got [3, 4, 8]");
  expect_error(halves_case({2, 4, 3, 8}, {3, 9, 8}, 0),
               "freqs_cos (value 2) shape: expected [2, 9, 8], got [3, 9, 8]");
  expect_error(halves_case({1, 4, 3, 8}, {1, 9, 8}, 7),
               "start_pos 7 + 3 positions exceed the 9 rows of freqs_cos");
  expect_error(Case("et_vk.apply_rotary_emb_interleaved.default")
                   .in(random(DType::kF32, {1, 2, 4}))
                   .in(random(DType::kF32, {7}))
                   .out(DType::kF32, {1, 2, 4}),
               "freqs (value 1) elements: expected 8, got 7");
}

}  // namespace
}  // namespace pteryx::ops::testing
