// Quantised products of many rows at f16 precision against the CPU, which sums in double.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/quant/gemm_f16.h"

#include <gtest/gtest.h>

#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

constexpr Tolerance kRounded{2e-2, 3e-2};

struct Grouped {
  int64_t m, k, n, group;
  bool bias = false;
  DType type = DType::kF32;
};

Case grouped(const Grouped& g) {
  const int64_t padded = (g.n + 3) / 4 * 4;
  Case c("et_vk.linear_q4gsw.default");
  c.in(random(g.type, {g.m, g.k}, 1, -1, 1))
      .constant(random(DType::kU8, {g.n, (g.k + 7) / 8 * 4}, 2, 0, 255))
      .in(random(g.type, {g.k / g.group, padded}, 3, 0.01, 0.05))
      .integer(g.group);
  g.bias ? c.in(random(g.type, {padded}, 4)) : c.none();
  return c.out(g.type, {g.m, g.n});
}

std::vector<TestTensor> on_the_cpu(const Case& c) {
  auto want = run(c, Where::kCpu);
  EXPECT_TRUE(want.ok()) << want.status().message();
  return want.ok() ? std::move(want).value() : std::vector<TestTensor>();
}

// Without subgroup matrices, also where the device has no f16.
TEST(GemmF16, InTilesOfPairs) {
  const auto check = [](const Grouped& g, const std::function<void(gpu::Caps&)>& mask) {
    Case c = grouped(g);
    const std::vector<TestTensor> want = on_the_cpu(c);
    expect_route(c.precision(Precision::kF16), "tiled_f16", want, kRounded, mask);
  };
  const auto without_f16 = [](gpu::Caps& caps) { caps.f16 = false; };
  check({20, 100, 130, 100, true}, nullptr);
  check({130, 64, 136, 32, true, DType::kF16}, nullptr);
  check({9, 1024, 5, 8}, without_f16);
}

// Results that leave whole tiles as matrices, to one tensor or several.
TEST(GemmF16, InWholeMatrices) {
  const Case one = grouped({70, 64, 128, 32});
  expect_matrices(one, on_the_cpu(one), kRounded);
  Case two("pteryx.linear_q4gsw");
  two.in(random(DType::kF32, {20, 64}, 1, -1, 1))
      .none()
      .none()
      .constant(random(DType::kU8, {256, 32}, 2, 0, 255))
      .in(random(DType::kF16, {2, 256}, 3, 0.01, 0.05))
      .integer(32)
      .none()
      .none()
      .none()
      .none()
      .none()
      .ints({128, 128})
      .outs({{DType::kF32, {20, 128}, {}}, {DType::kF32, {20, 128}, {}}});
  expect_matrices(two, on_the_cpu(two), kRounded, "matrix_small");
}

// Sums of whole tiles begin with the residual, others get it at the end; x comes behind a norm, and
// groups have minimums.
TEST(GemmF16, FromAResidual) {
  Case c("pteryx.linear_q4gsw");
  c.in(random(DType::kF32, {70, 64}, 1, -1, 1))
      .constant(random(DType::kF32, {64}, 5, 0.5, 1))
      .number(1e-5)
      .constant(random(DType::kU8, {64, 32}, 2, 0, 255))
      .in(random(DType::kF32, {2, 64}, 3, 0.01, 0.05))
      .integer(32)
      .in(random(DType::kF32, {2, 64}, 6, -0.1, 0.1))
      .none()
      .in(random(DType::kF32, {70, 64}, 4))
      .none()
      .none()
      .ints({64})
      .outs({{DType::kF32, {70, 64}, {}}});
  expect_matrices(c, on_the_cpu(c), kRounded, "matrix_small");
}

// The gate over the columns, which leave paired: with columns beyond the last whole tile and x as
// it is; and with k cut, behind a norm.
TEST(GemmF16, Gated) {
  const auto check = [](const Grouped& g, bool norm, std::string_view route) {
    Case c("pteryx.linear_q4gsw");
    c.in(random(g.type, {g.m, g.k}, 1, -1, 1));
    norm ? c.constant(random(DType::kF32, {g.k}, 5, 0.5, 1)).number(1e-5) : c.none().none();
    c.constant(random(DType::kU8, {g.n, g.k / 2}, 2, 0, 255))
        .in(random(DType::kF32, {g.k / g.group, g.n}, 3, 0.01, 0.05))
        .integer(g.group);
    g.bias ? c.none() : c.in(random(DType::kF32, {g.k / g.group, g.n}, 6, -0.1, 0.1));
    g.bias ? c.in(random(DType::kF32, {g.n}, 4)) : c.none();
    c.none().flag(true).none().ints({g.n / 2}).outs({{g.type, {g.m, g.n / 2}, {}}});
    expect_matrices(c, on_the_cpu(c), kRounded, route);
  };
  check({20, 64, 144, 32, true, DType::kF16}, false, "matrix");
  check({9, 512, 32, 64}, true, "matrix_few");
}

// One column; k in a single group that is no whole unit; two rows more than a tile.
TEST(GemmF16, OfOddSizes) {
  const Case c = grouped({130, 36, 1, 36, true});
  expect_matrices(c, on_the_cpu(c), kRounded);
}

}  // namespace
}  // namespace pteryx::ops::testing
