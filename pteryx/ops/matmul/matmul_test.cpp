// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

size_t at(int64_t i) { return static_cast<size_t>(i); }

struct Size {
  int64_t batches, m, n, k;
};

// y[batch, m, n] = alpha * a * b + beta * add(batch, m, n); b is [batches, k, n], or [n, k] for
// linear layers.
TestTensor reference(const TestTensor& a, const TestTensor& b, const Size& s, bool along_k,
                     const Dims& dims, double alpha = 1,
                     const std::function<double(int64_t, int64_t, int64_t)>& add = nullptr) {
  TestTensor y{a.dtype, dims, {}};
  for (int64_t g = 0; g < s.batches; ++g) {
    for (int64_t m = 0; m < s.m; ++m) {
      for (int64_t n = 0; n < s.n; ++n) {
        double total = 0;
        for (int64_t k = 0; k < s.k; ++k) {
          const int64_t i = along_k ? n * s.k + k : (g * s.k + k) * s.n + n;
          total += a.data[at((g * s.m + m) * s.k + k)] * b.data[at(i)];
        }
        y.data.push_back(alpha * total + (add ? add(g, m, n) : 0.0));
      }
    }
  }
  return y;
}

Tolerance within(DType t, int64_t k) {
  if (t == DType::kF16) return {2e-3 * std::sqrt(static_cast<double>(k) / 64 + 1), 1e-2};
  return is_float(t) ? Tolerance{1e-4, 1e-4} : kExact;
}

void check_linear(DType t, const Dims& leading, int64_t n, int64_t k, bool bias) {
  Dims xd = leading;
  Dims yd = leading;
  xd.push_back(k);
  yd.push_back(n);
  const TestTensor x = random(t, xd, 1, -1, 1);
  const TestTensor w = random(t, {n, k}, 2, -1, 1);
  const TestTensor b = random(t, {n}, 3);
  Case c("aten.linear.default");
  bias ? c.in(x).in(w).in(b) : c.in(x).in(w).none();
  const auto add = [&](int64_t, int64_t, int64_t j) { return bias ? b.data[at(j)] : 0.0; };
  expect_op(c.out(t, yd), {reference(x, w, {1, numel(leading), n, k}, true, yd, 1, add)},
            within(t, k));
}

void check_mm(DType t, int64_t m, int64_t n, int64_t k) {
  const TestTensor a = random(t, {m, k}, 4, -1, 1);
  const TestTensor b = random(t, {k, n}, 5, -1, 1);
  expect_op(Case("aten.mm.default").in(a).in(b).out(t, {m, n}),
            {reference(a, b, {1, m, n, k}, false, {m, n})}, within(t, k));
}

void check_bmm(DType t, const Size& s) {
  const TestTensor a = random(t, {s.batches, s.m, s.k}, 6, -1, 1);
  const TestTensor b = random(t, {s.batches, s.k, s.n}, 7, -1, 1);
  const Dims yd{s.batches, s.m, s.n};
  expect_op(Case("aten.bmm.default").in(a).in(b).out(t, yd), {reference(a, b, s, false, yd)},
            within(t, s.k));
}

// Sizes are chosen for the texts they lead to: operands in fours or not, a bias or none, each route
// at least once.
TEST(MatMul, LinearOfAnyRankAndSize) {
  check_linear(DType::kF32, {1}, 256, 512, false);
  check_linear(DType::kF32, {7}, 5, 3, true);
  check_linear(DType::kF32, {2, 3, 5}, 33, 23, true);
  check_linear(DType::kF32, {}, 6, 13, true);
  check_linear(DType::kF32, {70}, 136, 64, false);
  check_linear(DType::kF32, {9}, 1, 100, false);
}

TEST(MatMul, LinearOfManyInputs) {
  check_linear(DType::kF32, {1}, 37, 4096, false);
  check_linear(DType::kF32, {20}, 40, 4096, false);
}

TEST(MatMul, ManyResults) { check_linear(DType::kF32, {1}, 70000, 8, false); }

TEST(MatMul, MmOfAnySize) {
  for (const Size& s :
       {Size{1, 7, 5, 3}, Size{1, 3, 5, 7}, Size{1, 66, 132, 33}, Size{1, 8, 68, 64},
        Size{1, 33, 1, 40}, Size{1, 8, 20, 4096}, Size{1, 30, 20, 4096}}) {
    check_mm(DType::kF32, s.m, s.n, s.k);
  }
}

TEST(MatMul, BatchesAsInAttention) {
  for (const int64_t context : {1, 5, 129}) {
    check_bmm(DType::kF32, {4, 7, context, 64});
    check_bmm(DType::kF32, {4, 11, 64, context});
  }
}

// Operands that are rounded to f16 on their way into subgroup matrices.
TEST(MatMul, Matrices) {
  enum class Weight : uint8_t { kConstant, kComputed };
  const auto check = [](DType t, const Size& s, bool along_k, Weight weight) {
    const TestTensor a = random(t, {s.batches, s.m, s.k}, 8, -1, 1);
    const Dims bd = along_k ? Dims{s.n, s.k} : Dims{s.batches, s.k, s.n};
    const TestTensor b = random(t, bd, 9, -1, 1);
    const Dims yd{s.batches, s.m, s.n};
    Case c(along_k ? "aten.linear.default" : "aten.bmm.default");
    weight == Weight::kConstant ? c.in(a).constant(b) : c.in(a).in(b);
    if (along_k) c.none();
    const double rounding = 3e-4 * std::sqrt(static_cast<double>(s.k)) + 1e-3;
    expect_matrices(c.out(t, yd), {reference(a, b, s, along_k, yd)}, {rounding, 1e-2});
  };
  check(DType::kF16, {3, 70, 72, 40}, false, Weight::kComputed);
  check(DType::kF32, {1, 20, 33, 1000}, true, Weight::kComputed);  // k is cut
  check(DType::kF32, {1, 70, 128, 64}, true, Weight::kConstant);   // whole columns
  check(DType::kF16, {1, 9, 33, 1024}, true, Weight::kConstant);   // halves as they are
}

TEST(MatMul, Halves) {
  check_linear(DType::kF16, {70}, 68, 40, true);
  check_linear(DType::kF16, {8}, 33, 202, true);
  check_mm(DType::kF16, 8, 10, 36);
}

TEST(MatMul, IntegersOnTheCpu) {
  const TestTensor a = random(DType::kI64, {3, 4}, 8, -9, 9);
  const TestTensor b = random(DType::kI64, {4, 5}, 9, -9, 9);
  expect_op(Case("aten.mm.default").in(a).in(b).out(DType::kI64, {3, 5}),
            {reference(a, b, {1, 3, 5, 4}, false, {3, 5})}, kExact);
}

TEST(MatMul, EmptySumsAndEmptyResults) {
  check_mm(DType::kF32, 8, 5, 0);
  check_linear(DType::kF32, {}, 6, 0, true);
  check_mm(DType::kF32, 0, 5, 4);
  check_mm(DType::kF32, 3, 0, 4);
  check_bmm(DType::kF32, {0, 2, 3, 4});
  check_linear(DType::kF32, {2, 0}, 6, 4, true);
}

TEST(MatMul, AddmmBroadcastsSelf) {
  const int64_t m = 10;
  const int64_t n = 7;
  const int64_t k = 12;
  const TestTensor a = random(DType::kF32, {m, k}, 10);
  const TestTensor b = random(DType::kF32, {k, n}, 11);
  for (const Dims& d : {Dims{n}, Dims{1, n}, Dims{m, 1}, Dims{m, n}, Dims{}}) {
    const TestTensor self = random(DType::kF32, d, 12);
    const auto self_at = [&](int64_t, int64_t i, int64_t j) {
      const bool rows = d.rank() == 2 && d[0] == m;
      const bool columns = !d.empty() && d.back() == n;
      return self.data[at((rows ? i * d.back() : 0) + (columns ? j : 0))];
    };
    expect_op(Case("aten.addmm.default")
                  .in(self)
                  .in(a)
                  .in(b)
                  .integer(1)
                  .integer(1)
                  .out(DType::kF32, {m, n}),
              {reference(a, b, {1, m, n, k}, false, {m, n}, 1, self_at)}, {1e-4, 1e-4});
  }
  const TestTensor self = random(DType::kF32, {n}, 12);
  for (const double alpha : {0.5, 2.0}) {
    const auto self_at = [&](int64_t, int64_t, int64_t j) { return 0.25 * self.data[at(j)]; };
    expect_op(Case("aten.addmm.default")
                  .in(self)
                  .in(a)
                  .in(b)
                  .number(0.25)
                  .number(alpha)
                  .out(DType::kF32, {m, n}),
              {reference(a, b, {1, m, n, k}, false, {m, n}, alpha, self_at)}, {1e-4, 1e-4});
  }
}

// alpha and beta are for the whole sum, also where k is cut.
TEST(MatMul, AddmmOfManyInputsScalesOnce) {
  const Size s{1, 12, 8, 1024};
  const TestTensor a = random(DType::kF32, {s.m, s.k}, 10, -1, 1);
  const TestTensor b = random(DType::kF32, {s.k, s.n}, 11, -1, 1);
  const TestTensor self = random(DType::kF32, {s.n}, 12);
  const auto self_at = [&](int64_t, int64_t, int64_t j) { return 0.25 * self.data[at(j)]; };
  expect_op(Case("aten.addmm.default")
                .in(self)
                .in(a)
                .in(b)
                .number(0.25)
                .number(0.5)
                .out(DType::kF32, {s.m, s.n}),
            {reference(a, b, s, false, {s.m, s.n}, 0.5, self_at)}, {1e-4, 1e-4});
}

TEST(MatMul, AddmmWithBetaZeroIgnoresSelf) {
  const TestTensor a = random(DType::kF32, {7, 3}, 13);
  const TestTensor b = random(DType::kF32, {3, 5}, 14);
  const TestTensor self = make(DType::kF32, {5}, [](int64_t) { return std::nan(""); });
  expect_op(Case("aten.addmm.default")
                .in(self)
                .in(a)
                .in(b)
                .integer(0)
                .integer(1)
                .out(DType::kF32, {7, 5}),
            {reference(a, b, {1, 7, 5, 3}, false, {7, 5})}, {1e-5, 1e-5});
}

TEST(MatMul, AddmmOfASingleColumn) {
  const TestTensor a = random(DType::kF32, {20, 16}, 13);
  const TestTensor b = random(DType::kF32, {16, 1}, 14);
  const TestTensor self = random(DType::kF32, {20, 1}, 15);
  const auto self_at = [&](int64_t, int64_t i, int64_t) { return self.data[at(i)]; };
  expect_op(Case("aten.addmm.default")
                .in(self)
                .in(a)
                .in(b)
                .integer(1)
                .integer(1)
                .out(DType::kF32, {20, 1}),
            {reference(a, b, {1, 20, 1, 16}, false, {20, 1}, 1, self_at)}, {1e-5, 1e-5});
}

TEST(MatMul, BaddbmmAddsPerBatch) {
  const Size s{3, 9, 6, 8};
  const TestTensor a = random(DType::kF32, {s.batches, s.m, s.k}, 16);
  const TestTensor b = random(DType::kF32, {s.batches, s.k, s.n}, 17);
  const TestTensor self = random(DType::kF32, {s.batches, 1, s.n}, 18);
  const Dims yd{s.batches, s.m, s.n};
  const auto self_at = [&](int64_t g, int64_t, int64_t j) {
    return 2 * self.data[at(g * s.n + j)];
  };
  expect_op(
      Case("aten.baddbmm.default").in(self).in(a).in(b).integer(2).number(0.5).out(DType::kF32, yd),
      {reference(a, b, s, false, yd, 0.5, self_at)}, {1e-4, 1e-4});
}

TEST(MatMul, RefusesSizesThatDoNotMeet) {
  const auto x = [](const Dims& d) { return random(DType::kF32, d); };
  expect_error(Case("aten.mm.default").in(x({2, 3})).in(x({4, 5})).out(DType::kF32, {2, 5}),
               "b (value 1) shape: expected [3, 5], got [4, 5]");
  expect_error(
      Case("aten.bmm.default").in(x({2, 2, 3})).in(x({1, 3, 5})).out(DType::kF32, {2, 2, 5}),
      "b (value 1) shape: expected [2, 3, 5], got [1, 3, 5]");
  expect_error(
      Case("aten.linear.default").in(x({2, 3})).in(x({5, 4})).none().out(DType::kF32, {2, 5}),
      "weight (value 1) shape: expected [5, 3], got [5, 4]");
  expect_error(
      Case("aten.linear.default").in(x({2, 3})).in(x({5, 3})).in(x({4})).out(DType::kF32, {2, 5}),
      "bias (value 2) shape: expected one that broadcasts to [2, 5], got [4]");
}

}  // namespace
}  // namespace pteryx::ops::testing
