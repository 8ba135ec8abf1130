// Coordinates, for references that say element by element where a result comes from.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {

using Coords = std::vector<int64_t>;

inline Coords coords(const Dims& dims, int64_t i) {
  Coords c(dims.rank());
  for (size_t d = dims.rank(); d-- > 0; i /= dims[d]) c[d] = i % dims[d];
  return c;
}

inline size_t flat(const Dims& dims, const Coords& c) {
  int64_t i = 0;
  for (size_t d = 0; d < dims.rank(); ++d) i = i * dims[d] + c[d];
  return static_cast<size_t>(i);
}

// The tensor whose element at c is f(c).
template <typename F>
TestTensor tabulate(DType dtype, const Dims& dims, F&& f) {
  return make(dtype, dims, [&](int64_t i) { return static_cast<double>(f(coords(dims, i))); });
}

// The tensor whose element at c is x's at f(c).
template <typename F>
TestTensor moved(const TestTensor& x, const Dims& dims, F&& f) {
  return tabulate(x.dtype, dims, [&](const Coords& c) { return x.data[flat(x.dims, f(c))]; });
}

inline const std::vector<DType>& every_type() {
  static const std::vector<DType> types = {DType::kF32, DType::kF16, DType::kI32, DType::kBool,
                                           DType::kU8,  DType::kI8,  DType::kI64, DType::kBF16};
  return types;
}

// Values in the range of every type.
inline TestTensor some(DType dtype, const Dims& dims, uint32_t seed = 1) {
  const bool sign = dtype != DType::kU8 && dtype != DType::kBool;
  return random(dtype, dims, seed, sign ? -100 : 0, 100);
}

}  // namespace pteryx::ops::testing
