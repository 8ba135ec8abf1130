// What the routes of matrix products share: the texts that load operands and store results, params.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pteryx/ops/matmul/kernels.h"

namespace pteryx::ops::matmul {

// A matrix as fetched four neighbours at a time, along `inner`.
struct Fetch {
  std::string_view name;          // of the binding: a, b
  std::string_view outer, inner;  // params: sizes
  std::string_view outer_stride, inner_stride;
  int64_t outer_step, inner_step, batch_step, inner_size;
  DType dtype;

  // Four neighbours are one load: every group of four starts at a multiple of four, and there is
  // one.
  bool whole() const {
    return inner_step == 1 && inner_size > 0 && inner_size % 4 == 0 && outer_step % 4 == 0 &&
           batch_step % 4 == 0;
  }
};

Fetch fetch_a(const MatMul& d);
Fetch fetch_b(const MatMul& d);
Bind bind_operand(const Fetch& f, const Tensor& t);
// Eight halves are one load of 16 bytes.
bool in_eights(const Fetch& f);
// fn a4 or b4 of common/matmul.wgsl.
std::string fetch_text(const Fetch& f);

// fn epilogue: alpha, beta and what is added.
std::string epilogue_text(const MatMul& d);
// fn put2 of common/matmul.wgsl; `value` makes an element from its sum and column.
std::string put_text(Access access, DType y, std::string_view value);
inline constexpr std::string_view kFinished = "epilogue({}, batch, m, {})";

}  // namespace pteryx::ops::matmul
