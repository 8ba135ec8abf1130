// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/testing/quantised_weight.h"

#include <algorithm>

namespace pteryx::ops::testing {
namespace {

size_t at(int64_t i) { return static_cast<size_t>(i); }

}  // namespace

QuantisedWeight::QuantisedWeight(int64_t rows, int64_t columns, int64_t lo, int64_t hi)
    : n(rows), k(columns) {
  const TestTensor t =
      random(DType::kI32, {n, k}, 21, static_cast<double>(lo), static_cast<double>(hi));
  for (const double v : t.data) codes.push_back(static_cast<int64_t>(v));
}

int64_t QuantisedWeight::code(int64_t row, int64_t column) const {
  return column < k ? codes[at(row * k + column)] : 0;
}

TestTensor QuantisedWeight::bytes() const {
  return make(DType::kI8, {n, k}, [&](int64_t i) { return static_cast<double>(codes[at(i)]); });
}

TestTensor QuantisedWeight::nibbles(int64_t row_bytes, bool low_first) const {
  return make(DType::kU8, {n, row_bytes}, [&](int64_t i) {
    const int64_t even = code(i / row_bytes, i % row_bytes * 2) + 8;
    const int64_t odd = code(i / row_bytes, i % row_bytes * 2 + 1) + 8;
    return static_cast<double>(low_first ? odd * 16 + even : even * 16 + odd);
  });
}

TestTensor quantised_reference(const TestTensor& x, const QuantisedWeight& w,
                               const std::function<double(int64_t, int64_t)>& scale,
                               const std::function<double(int64_t)>& bias, DType t,
                               const std::function<double(int64_t, int64_t)>& minimum) {
  Dims dims = x.dims;
  dims[dims.rank() - 1] = w.n;
  TestTensor y{t, dims, {}};
  for (int64_t m = 0; m < numel(dims) / std::max<int64_t>(w.n, 1); ++m) {
    for (int64_t n = 0; n < w.n; ++n) {
      double total = 0;
      for (int64_t k = 0; k < w.k; ++k) {
        const double value = static_cast<double>(w.code(n, k)) * scale(n, k);
        total += x.data[at(m * w.k + k)] * (minimum ? value + minimum(n, k) : value);
      }
      y.data.push_back(total + bias(n));
    }
  }
  return y;
}

}  // namespace pteryx::ops::testing
