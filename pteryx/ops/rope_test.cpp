// Rotary embeddings against the formula in double. SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

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
  expect_error(Case("et_vk.apply_rotary_emb_interleaved.default")
                   .in(random(DType::kF32, {1, 2, 4}))
                   .in(random(DType::kF32, {7}))
                   .out(DType::kF32, {1, 2, 4}),
               "freqs (value 1) elements: expected 8, got 7");
}

}  // namespace
}  // namespace pteryx::ops::testing
