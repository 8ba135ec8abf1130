// Walking several tensors of one shape at once: merged dims for shaders, an odometer for CPU
// kernels.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <span>
#include <vector>

#include "pteryx/base/dims.h"
#include "pteryx/ops/op.h"

namespace pteryx::ops {

// Strides of `dims` as seen from the broadcast shape `to`: 0 where a dim of size 1 repeats or is
// missing.
Dims broadcast_strides(const Dims& dims, const Dims& to);

// A shape and the strides of up to four operands over it, neighbouring dims merged where every
// operand allows it: fewer dims mean fewer divisions in the shader.
struct Walk {
  Dims dims;
  std::array<Dims, 4> strides;
};
Walk merge_dims(const Dims& dims, std::span<const Dims> strides);

// dims or strides as the shader wants them: right-aligned, 8 entries. Negative strides wrap, as u32
// arithmetic does.
std::array<uint32_t, 8> packed_dims(const Dims& dims);
std::array<uint32_t, 8> packed_strides(const Dims& strides);

// The element offsets of each operand at index i of `dims`, in row-major order.
template <size_t N>
std::array<int64_t, N> offsets_at(int64_t i, const Dims& dims,
                                  const std::array<const Dims*, N>& strides) {
  std::array<int64_t, N> at{};
  for (size_t d = dims.rank(); d-- > 0; i /= dims[d]) {
    for (size_t k = 0; k < N; ++k) at[k] += i % dims[d] * (*strides[k])[d];
  }
  return at;
}

// Visits every index of `dims` in row-major order, keeping the element offset of each operand.
template <size_t N, typename F>
void for_each_index(const Dims& dims, const std::array<Dims, N>& strides, F&& visit) {
  const int64_t n = numel(dims);
  std::array<int64_t, N> at{};
  Dims index = Dims::filled(dims.rank(), 0);
  for (int64_t i = 0; i < n; ++i) {
    visit(i, at);
    for (size_t d = dims.rank(); d-- > 0;) {
      ++index[d];
      for (size_t k = 0; k < N; ++k) at[k] += strides[k][d];
      if (index[d] < dims[d]) break;
      for (size_t k = 0; k < N; ++k) at[k] -= strides[k][d] * dims[d];
      index[d] = 0;
    }
  }
}

}  // namespace pteryx::ops
