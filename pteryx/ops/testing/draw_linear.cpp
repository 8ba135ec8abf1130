// Random calls of matrix products, with references in double.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>

#include "pteryx/ops/testing/draw_products.h"

namespace pteryx::ops::testing {
namespace {

using Kind = ProductKind;
constexpr Kind kKinds[] = {
    {Kind::Rows::kOne, true, false, DType::kF32},  {Kind::Rows::kOne, false, true, DType::kF32},
    {Kind::Rows::kFew, true, true, DType::kF32},   {Kind::Rows::kMany, true, false, DType::kF32},
    {Kind::Rows::kMany, false, true, DType::kF32}, {Kind::Rows::kMany, true, true, DType::kF16},
};

}  // namespace

const ProductKind& draw_product_kind(Draw& d) {
  return kKinds[d.integer(0, std::ssize(kKinds) - 1)];
}

ProductSizes draw_product_sizes(Draw& d, const ProductKind& kind) {
  const int64_t m = kind.rows == Kind::Rows::kOne
                        ? 1
                        : (kind.rows == Kind::Rows::kFew ? d.integer(3, 4) : d.integer(9, 90));
  return {m, kind.aligned ? 32 * d.integer(1, 8) : d.integer(1, 60) * 2 + 1,
          (d.chance(0.3) ? d.integer(1, 36) : d.integer(1, 9)) * 4 - (kind.aligned ? 0 : 1)};
}

namespace {

Tolerance product_tolerance(DType t, int64_t k) {
  if (t != DType::kF16) return {1e-4, 1e-4};
  return {2e-3 * std::sqrt(std::max(1.0, static_cast<double>(k) / 64)), 1e-2};
}

// beta * self + alpha * a b for one matrix; b(k, n) and self(m, n) look elements up.
void product(TestTensor& y, const TestTensor& a, int64_t a_from, const ProductSizes& s,
             double alpha, const auto& b, const auto& self) {
  for (int64_t m = 0; m < s.m; ++m) {
    for (int64_t n = 0; n < s.n; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < s.k; ++k) sum += a.data[at(a_from + m * s.k + k)] * b(k, n);
      y.data.push_back(self(m, n) + (alpha == 0 ? 0 : alpha * sum));
    }
  }
}

Drawn draw_linear(std::string_view op, Draw& d, const ProductSizes& s, const ProductKind& kind) {
  const DType t = kind.type;
  const bool biased = kind.biased;
  Dims dims = d.chance(0.3) ? Dims{1, s.m} : (s.m == 1 && d.chance(0.3) ? Dims{} : Dims{s.m});
  if (d.chance(0.1)) dims = {2, s.m};
  const ProductSizes all{numel(dims), s.k, s.n};
  Dims x_dims = dims;
  x_dims.push_back(s.k);
  dims.push_back(s.n);
  const TestTensor x = d.values(t, x_dims, -1, 1);
  const TestTensor w = d.values(t, {s.n, s.k}, -1, 1);
  const TestTensor bias = d.values(t, {s.n});
  TestTensor y{t, dims, {}};
  product(
      y, x, 0, all, 1, [&](int64_t k, int64_t n) { return w.data[at(n * s.k + k)]; },
      [&](int64_t, int64_t n) { return biased ? bias.data[at(n)] : 0; });
  Case call{std::string(op)};
  call.in(x).in(w);
  biased ? call.in(bias) : call.none();
  return {call.out(t, dims), product_tolerance(t, s.k), std::vector<TestTensor>{y}};
}

// What becomes of a linear layer's results; few combinations, each a text of its own.
Drawn draw_fused_linear(std::string_view op, Draw& d) {
  const ProductKind& kind = draw_product_kind(d);
  const ProductSizes s = draw_product_sizes(d, kind);
  const DType t = kind.type;
  const bool transposed = kind.aligned && kind.rows == ProductKind::Rows::kMany;
  const std::string activation = kind.biased ? "gelu" : (kind.aligned ? "silu" : "none");
  const TestTensor x = d.values(t, {s.m, s.k}, -1, 1);
  const TestTensor w = d.values(t, {s.n, s.k}, -0.3, 0.3);
  const TestTensor bias = d.values(t, {s.n});
  const TestTensor scale = d.values(t, {s.n});
  const Dims dims = transposed ? Dims{s.n, s.m} : Dims{s.m, s.n};
  const TestTensor residual = d.values(t, dims);
  TestTensor sums{t, {s.m, s.n}, {}};
  product(
      sums, x, 0, s, 1, [&](int64_t k, int64_t n) { return w.data[at(n * s.k + k)]; },
      [&](int64_t, int64_t n) { return kind.biased ? bias.data[at(n)] : 0; });
  TestTensor y = residual;
  for (int64_t m = 0; m < s.m; ++m) {
    for (int64_t n = 0; n < s.n; ++n) {
      double v = sums.data[at(m * s.n + n)];
      if (activation == "gelu") v *= 0.5 * (1 + std::erf(v * std::sqrt(0.5)));
      if (activation == "silu") v /= 1 + std::exp(-v);
      const int64_t to = transposed ? n * s.m + m : m * s.n + n;
      if (kind.aligned) v *= scale.data[at(n)];
      y.data[at(to)] = v + (kind.biased ? residual.data[at(to)] : 0);
    }
  }
  Case call{std::string(op)};
  call.in(x).in(w);
  kind.biased ? call.in(bias) : call.none();
  call.text(activation);
  kind.aligned ? call.in(scale) : call.none();
  kind.biased ? call.in(residual) : call.none();
  transposed ? call.flag(true) : call.none();
  return {call.out(t, dims), product_tolerance(t, s.k), std::vector<TestTensor>{y}};
}

Drawn draw_matmul(std::string_view op, Draw& d) {
  // Halves for linear layers only, to compile less.
  const ProductKind drawn = draw_product_kind(d);
  const bool layer = is(op, "linear");
  const ProductKind kind{drawn.rows, drawn.aligned, drawn.biased, layer ? drawn.type : DType::kF32};
  const DType t = kind.type;
  const ProductSizes s = draw_product_sizes(d, kind);
  if (layer) return draw_linear(op, d, s, kind);
  const bool batched = is(op, "bmm");
  const bool adds = is(op, "addmm") || is(op, "baddbmm");
  const int64_t batch = batched ? d.integer(1, 4) : 1;
  const auto shape = [&](int64_t r, int64_t c) { return batched ? Dims{batch, r, c} : Dims{r, c}; };
  const TestTensor a = d.values(t, shape(s.m, s.k), -1, 1);
  const TestTensor b = d.values(t, shape(s.k, s.n), -1, 1);
  const Dims dims = shape(s.m, s.n);
  const Dims self_dims = kind.biased ? Dims{s.n} : (d.chance(0.5) ? dims : d.narrowed(dims));
  const TestTensor self = d.values(t, self_dims);
  const double beta = kind.aligned ? d.pick({1.0, 0.5}) : 0;
  const double alpha = d.pick({1.0, 0.5, -1.0, 0.0});
  const auto number = [&](Case& c, double v) {
    v == std::round(v) && d.chance(0.5) ? c.integer(static_cast<int64_t>(v)) : c.number(v);
  };
  TestTensor y{t, dims, {}};
  for (int64_t i = 0; i < batch; ++i) {
    const auto self_at = [&](int64_t m, int64_t n) {
      const int64_t place[] = {i, m, n};
      int64_t from = 0;
      for (size_t x = 0; x < self_dims.rank(); ++x) {
        const int64_t p = place[3 - self_dims.rank() + x];
        from = from * self_dims[x] + (self_dims[x] == 1 ? 0 : p);
      }
      return beta == 0 ? 0.0 : beta * self.data[at(from)];
    };
    product(
        y, a, i * s.m * s.k, s, adds ? alpha : 1,
        [&](int64_t k, int64_t n) { return b.data[at((i * s.k + k) * s.n + n)]; },
        [&](int64_t m, int64_t n) { return adds ? self_at(m, n) : 0.0; });
  }
  Case call{std::string(op)};
  if (adds) call.in(self);
  call.in(a).in(b);
  if (adds) {
    number(call, beta);
    number(call, alpha);
  }
  return {call.out(t, dims), product_tolerance(t, s.k), std::vector<TestTensor>{y}};
}

}  // namespace

std::vector<Generator> linear_generators() {
  return {
      {"Matmul",
       {"aten.linear.default", "aten.mm.default", "aten.bmm.default", "aten.addmm.default",
        "aten.baddbmm.default"},
       draw_matmul},
      {"FusedLinear", {"pteryx.dense"}, draw_fused_linear},
  };
}

}  // namespace pteryx::ops::testing
