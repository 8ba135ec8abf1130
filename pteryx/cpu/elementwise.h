// Elementwise functions of f32. Each call does a range of elements, so that threads can share the
// work; y may be an operand.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

namespace pteryx::cpu {

enum class Unary : uint8_t {
  kNeg,
  kAbs,
  kSqrt,
  kRsqrt,
  kReciprocal,
  kExp,
  kErf,
  kTanh,
  kSigmoid,
  kSilu,
  kHardsigmoid,
  kHardswish,
  kGelu,
  kGeluTanh,
  kClamp,      // to [a, b]
  kLeakyRelu,  // x, or a * x below 0
};
void apply(Unary f, float a, float b, const float* x, size_t count, float* y);

enum class Binary : uint8_t { kAdd, kSub, kMul, kDiv, kMin, kMax, kSiluMul };
// y = f(a, alpha * b), where sums and differences alone have an alpha; an operand with a step of 0
// is one element for all, with 1 dense.
struct Binaries {
  Binary f = Binary::kAdd;
  float alpha = 1;
  size_t a_step = 1;
  size_t b_step = 1;
};
void apply(const Binaries& f, const float* a, const float* b, size_t count, float* y);

}  // namespace pteryx::cpu
