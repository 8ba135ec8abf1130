// Random calls of quantised matrix products, and of what chooses scales, with references in double.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>

#include "pteryx/ops/testing/draw_products.h"
#include "pteryx/ops/testing/quantised_weight.h"

namespace pteryx::ops::testing {
namespace {

// What every quantised linear has: x [.., K], codes [N, K], groups of columns that share a scale.
struct Quantised {
  Dims lead;
  int64_t m, k, n, group;
  DType t;
  TestTensor codes;  // [N, K]
  bool biased;

  Quantised(Draw& d, int64_t lo, int64_t hi, bool grouped) {
    const ProductKind& kind = draw_product_kind(d);
    const ProductSizes s = draw_product_sizes(d, kind);
    m = s.m;
    n = s.n;
    k = s.k;
    group = k;
    if (grouped && kind.aligned) group = d.pick<int64_t>({4, 8, 16, 32});
    if (grouped && !kind.aligned) {
      group = d.integer(1, 24);
      k = group * d.integer(1, 200 / group);
    }
    t = kind.type;
    lead = d.chance(0.5) ? Dims{1, m} : Dims{m};
    codes = d.ids(DType::kI8, {n, k}, lo, hi);
    biased = kind.biased;
  }
  Dims dims(int64_t last) const {
    Dims all = lead;
    all.push_back(last);
    return all;
  }
  TestTensor nibbles(int64_t row_bytes, bool low_first) const {
    const auto code = [&](int64_t row, int64_t c) {
      return c < k ? codes.data[at(row * k + c)] + 8 : 8.0;
    };
    return make(DType::kU8, {n, row_bytes}, [&](int64_t i) {
      const double even = code(i / row_bytes, i % row_bytes * 2);
      const double odd = code(i / row_bytes, i % row_bytes * 2 + 1);
      return low_first ? odd * 16 + even : even * 16 + odd;
    });
  }
  // scale(n, k) and bias(n) look up; x holds what is multiplied.
  TestTensor result(DType type, const TestTensor& x, const auto& scale, const auto& bias) const {
    TestTensor y{type, dims(n), {}};
    for (int64_t row = 0; row < m; ++row) {
      for (int64_t c = 0; c < n; ++c) {
        double sum = 0;
        for (int64_t i = 0; i < k; ++i)
          sum += x.data[at(row * k + i)] * codes.data[at(c * k + i)] * scale(c, i);
        y.data.push_back(sum + (biased ? bias(c) : 0));
      }
    }
    return y;
  }
};

Drawn groups_of_codes(std::string_view op, Draw& d) {
  const Quantised q(d, -8, 7, true);
  const TestTensor x = d.values(q.t, q.dims(q.k), -1, 1);
  const int64_t row = padded(q.n, 4);
  const TestTensor scales = d.values(q.t, {q.k / q.group, row}, 0.01, 0.05);
  const TestTensor bias = d.values(q.t, {row});
  Case call{std::string(op)};
  call.in(x).in(q.nibbles(padded(q.k, 8) / 2, true)).in(scales).integer(q.group);
  q.biased ? call.in(bias) : call.none();
  return {call.out(q.t, q.dims(q.n)), quantised_tolerance(q.t),
          std::vector<TestTensor>{q.result(
              q.t, x, [&](int64_t n, int64_t k) { return scales.data[at(k / q.group * row + n)]; },
              [&](int64_t n) { return bias.data[at(n)]; })}};
}

Drawn channels_of_codes(std::string_view op, Draw& d) {
  const bool bytes = is(op, "int8pack");
  Quantised q(d, bytes ? -128 : -8, bytes ? 127 : 7, false);
  q.biased = false;
  const TestTensor x = d.values(q.t, q.dims(q.k), -1, 1);
  const TestTensor scales = d.values(q.t, {q.n}, bytes ? 0.001 : 0.01, bytes ? 0.005 : 0.05);
  Case call{std::string(op)};
  call.in(x).in(bytes ? q.codes : q.nibbles((q.k + 1) / 2, false)).in(scales);
  return {call.out(q.t, q.dims(q.n)), quantised_tolerance(q.t),
          std::vector<TestTensor>{q.result(
              q.t, x, [&](int64_t n, int64_t) { return scales.data[at(n)]; },
              [](int64_t) { return 0.0; })}};
}

Drawn codes_by_codes(std::string_view op, Draw& d) {
  const Quantised q(d, -128, 127, false);
  const TestTensor x = d.ids(DType::kI8, q.dims(q.k), -128, 127);
  const double zero = static_cast<double>(d.integer(-128, 127));
  const double scale = d.pick({0.02, 0.5, 0.00390625});
  const int64_t row = padded(q.n, 4);
  const TestTensor scales = d.values(DType::kF32, {row}, 0.001, 0.005);
  const TestTensor bias = d.values(DType::kF32, {row});
  const TestTensor sums = make(DType::kI32, {row}, [&](int64_t n) {
    double sum = 0;
    for (int64_t k = 0; n < q.n && k < q.k; ++k) sum += q.codes.data[at(n * q.k + k)];
    return sum;
  });
  TestTensor centred = x;
  for (double& v : centred.data) v -= zero;
  Case call{std::string(op)};
  call.in(x).number(scale).integer(static_cast<int64_t>(zero)).in(q.codes).in(sums).in(scales);
  q.biased ? call.in(bias) : call.none();
  return {call.out(DType::kF32, q.dims(q.n)),
          {2e-4, 1e-5},
          std::vector<TestTensor>{q.result(
              DType::kF32, centred, [&](int64_t n, int64_t) { return scale * scales.data[at(n)]; },
              [&](int64_t n) { return bias.data[at(n)]; })}};
}

// Scales are powers of two and x keeps a quarter of a step away from ties, so that every device
// rounds to the same codes.
Drawn rows_by_codes(std::string_view op, Draw& d) {
  const Quantised q(d, -8, 7, true);
  const TestTensor row_scale =
      make(DType::kF32, q.lead, [&](int64_t) { return d.pick({0.015625, 0.0078125, 0.0625}); });
  const TestTensor row_zero = d.ids(DType::kI8, q.lead, -128, 127);
  const TestTensor steps = d.ids(DType::kI32, q.dims(q.k), -600, 600);
  const TestTensor x = make(DType::kF32, steps.dims, [&](int64_t i) {
    const double quarters = steps.data[at(i)];
    return (std::fmod(quarters, 4) == 2 || std::fmod(quarters, 4) == -2 ? quarters + 1 : quarters) /
           4 * row_scale.data[at(i / q.k)];
  });
  TestTensor rounded = x;
  for (size_t i = 0; i < rounded.data.size(); ++i) {
    const size_t m = i / at(q.k);
    const double code = std::nearbyint(x.data[i] / row_scale.data[m]) + row_zero.data[m];
    rounded.data[i] = (std::clamp(code, -128.0, 127.0) - row_zero.data[m]) * row_scale.data[m];
  }
  const int64_t groups = q.k / q.group;
  const int64_t row = padded(q.n, 4);
  const TestTensor scales = d.values(DType::kF32, {groups, row}, 0.01, 0.05);
  const TestTensor sums = make(DType::kI32, {groups, padded(q.n, 8)}, [&](int64_t i) {
    const int64_t n = i % padded(q.n, 8);
    double sum = 0;
    for (int64_t k = 0; n < q.n && k < q.group; ++k)
      sum += q.codes.data[at(n * q.k + i / padded(q.n, 8) * q.group + k)];
    return sum;
  });
  const TestTensor bias = d.values(DType::kF32, {row});
  Case call{std::string(op)};
  call.in(x).in(row_scale).in(row_zero).in(q.nibbles(padded(q.k, 8) / 2, true)).in(sums).in(scales);
  call.integer(q.group);
  q.biased ? call.in(bias) : call.none();
  return {call.out(DType::kF32, q.dims(q.n)),
          {1e-4, 1e-4 * (1 + static_cast<double>(q.k) / 1024)},
          std::vector<TestTensor>{q.result(
              DType::kF32, rounded,
              [&](int64_t n, int64_t k) { return scales.data[at(k / q.group * row + n)]; },
              [&](int64_t n) { return bias.data[at(n)]; })}};
}

Drawn draw_qlinear(std::string_view op, Draw& d) {
  if (is(op, "dq8ca")) return rows_by_codes(op, d);
  if (is(op, "q8ta")) return codes_by_codes(op, d);
  return is(op, "q4gsw") ? groups_of_codes(op, d) : channels_of_codes(op, d);
}

// ---- scale and zero point of rows

// The smallest value is -(n + 1/4) steps, or the row has one sign: no quotient near a tie.
Drawn draw_qparams(std::string_view op, Draw& d) {
  const bool whole = is(op, "choose_qparams.tensor");
  const bool token = is(op, "per_token");
  const int64_t rows = whole ? 1 : (d.chance(0.3) ? d.integer(1, 4) : d.integer(1, 70));
  const int64_t length = d.chance(0.3) ? d.integer(3, 400) : d.integer(3, 40);
  const double lowest = whole && d.chance(0.5) ? 0 : -128;
  const double highest = lowest + 255;
  const double eps = whole ? 1e-5 : std::ldexp(1.0, -23);
  TestTensor x = d.values(DType::kF32, {rows, length}, -0.3, 0.3);
  const Dims kept = token ? Dims{rows, 1} : (whole ? Dims{1} : Dims{rows});
  TestTensor scale{DType::kF32, kept, {}};
  const DType zero_type = whole || token ? DType::kI32 : DType::kI8;
  TestTensor zero{zero_type, kept, {}};
  for (int64_t r = 0; r < rows; ++r) {
    const double below = static_cast<double>(d.integer(90, 160)) + 0.25;
    const int64_t kind = d.integer(0, token ? 2 : 3);
    for (int64_t i = 0; i < length; ++i) {
      double& v = x.data[at(r * length + i)];
      if (kind == 1) v = std::fabs(v);
      if (kind == 2) v = -std::fabs(v);
      if (kind == 3) v = 0;
    }
    if (kind == 0) {
      x.data[at(r * length)] = -below / 128;
      x.data[at(r * length + 1)] = (255 - below) / 128;
    }
  }
  x = round_to(x, DType::kF32);
  for (int64_t r = 0; r < rows; ++r) {
    const auto first = x.data.begin() + r * length;
    const double lo = std::min(0.0, *std::min_element(first, first + length));
    const double hi = std::max(0.0, *std::max_element(first, first + length));
    const double s = std::max((hi - lo) / 255, eps);
    scale.data.push_back(s);
    zero.data.push_back(std::clamp(lowest - std::nearbyint(lo / s), lowest, highest));
  }
  Case call{std::string(op)};
  call.in(x);
  if (token) {
    call.none();
  } else if (whole) {
    call.integer(static_cast<int64_t>(lowest)).integer(static_cast<int64_t>(highest));
    call.number(eps).none();
  } else {
    call.text("ASYMMETRIC").ints({1, length}).none().integer(-128);
    d.chance(0.5) ? call.integer(127) : call.number(127);
    call.none().none().none().flag(false);
  }
  return {call.outs({scale, zero}), {0, 1e-6}, std::vector<TestTensor>{scale, zero}};
}

}  // namespace

std::vector<Generator> quantised_generators() {
  return {
      {"QLinear",
       {"et_vk.linear_q4gsw.default", "et_vk.linear_qcs4w.default",
        "aten._weight_int8pack_mm.default", "et_vk.linear_q8ta_q8csw.default",
        "et_vk.linear_dq8ca_q4gsw.default"},
       draw_qlinear},
      {"ChooseQparams",
       {"torchao.choose_qparams_affine.default", "quantized_decomposed.choose_qparams.tensor",
        "quantized_decomposed.choose_qparams_per_token_asymmetric.default"},
       draw_qparams},
  };
}

}  // namespace pteryx::ops::testing
