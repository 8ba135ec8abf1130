// Quantised weights and what a layer gives with them, for the tests of quantised layers.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <vector>

#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {

// Codes of a weight, [n, k], and the ways to pack them.
struct QuantisedWeight {
  int64_t n, k;
  std::vector<int64_t> codes;

  QuantisedWeight(int64_t rows, int64_t columns, int64_t lo, int64_t hi);
  int64_t code(int64_t row, int64_t column) const;
  TestTensor bytes() const;
  TestTensor nibbles(int64_t row_bytes, bool low_first) const;
};

// The product in double; scale(n, k), bias(n) and, where set, minimum(n, k) are the test's.
TestTensor quantised_reference(const TestTensor& x, const QuantisedWeight& w,
                               const std::function<double(int64_t, int64_t)>& scale,
                               const std::function<double(int64_t)>& bias, DType t,
                               const std::function<double(int64_t, int64_t)>& minimum = nullptr);
inline double no_bias(int64_t /*n*/) { return 0; }

inline Tolerance quantised_tolerance(DType t) {
  return t == DType::kF16 ? Tolerance{2e-2, 3e-2} : Tolerance{1e-4, 1e-3};
}

inline int64_t padded(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

}  // namespace pteryx::ops::testing
