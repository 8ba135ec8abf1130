// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {
namespace {

size_t at(int64_t i) { return static_cast<size_t>(i); }

// Entry of scale and zero point for element i.
using Entry = std::function<int64_t(int64_t)>;

TestTensor quantized(const TestTensor& x, const TestTensor& scale, const TestTensor& zero,
                     const Entry& entry, DType t, double qmin, double qmax) {
  TestTensor y{t, x.dims, {}};
  for (int64_t i = 0; i < numel(x.dims); ++i) {
    const size_t e = at(entry(i));
    y.data.push_back(
        std::clamp(std::nearbyint(x.data[at(i)] / scale.data[e]) + zero.data[e], qmin, qmax));
  }
  return y;
}
TestTensor dequantized(const TestTensor& q, const TestTensor& scale, const TestTensor& zero,
                       const Entry& entry, DType t) {
  TestTensor y{t, q.dims, {}};
  for (int64_t i = 0; i < numel(q.dims); ++i) {
    const size_t e = at(entry(i));
    y.data.push_back((q.data[at(i)] - zero.data[e]) * scale.data[e]);
  }
  return y;
}

// Numbers away from ties of any of the scales, which are powers of two.
TestTensor numbers(const Dims& dims, DType t = DType::kF32) {
  const TestTensor noise = random(DType::kI32, dims, 5, -600, 600);
  return make(t, dims, [&](int64_t i) { return (noise.data[at(i)] + 0.25) / 64; });
}
TestTensor scales(const Dims& dims) {
  return make(DType::kF32, dims,
              [](int64_t i) { return i % 3 == 1 ? 0.0625 : (i % 3 == 2 ? 0.125 : 0.03125); });
}
TestTensor zeros(const Dims& dims, DType t = DType::kI32) { return random(t, dims, 7, -20, 20); }
int64_t first(int64_t /*i*/) { return 0; }

TEST(Affine, PerTensor) {
  const TestTensor scale = scales({1});
  const TestTensor zero = make(DType::kI32, {1}, [](int64_t) { return 3.0; });
  for (const Dims& d : {Dims{5}, Dims{2, 3, 7}, Dims{}, Dims{0, 3}}) {
    const TestTensor x = numbers(d);
    for (const DType t : {DType::kI8, DType::kU8, DType::kI32, DType::kI16}) {
      const double lo = t == DType::kU8 ? 0 : -128;
      const TestTensor q = quantized(x, scale, zero, first, t, lo, 127);
      expect_op(Case("quantized_decomposed.quantize_per_tensor.default")
                    .in(x)
                    .number(scale.data[0])
                    .integer(3)
                    .number(lo)
                    .integer(127)
                    .none()
                    .out(t, d),
                {q}, kExact);
      expect_op(Case("quantized_decomposed.dequantize_per_tensor.default")
                    .in(q)
                    .number(scale.data[0])
                    .integer(3)
                    .number(lo)
                    .integer(127)
                    .none()
                    .none()
                    .out(DType::kF32, d),
                {dequantized(q, scale, zero, first, DType::kF32)}, kExact);
    }
  }
  const TestTensor halves = numbers({9}, DType::kF16);
  expect_op(Case("quantized_decomposed.quantize_per_tensor.default")
                .in(halves)
                .number(scale.data[0])
                .integer(3)
                .integer(-128)
                .integer(127)
                .none()
                .out(DType::kI8, {9}),
            {quantized(halves, scale, zero, first, DType::kI8, -128, 127)}, kExact);
}

TEST(Affine, PerTensorFromTensors) {
  const TestTensor scale = scales({1});
  const TestTensor x = numbers({3, 7});
  for (const DType t : {DType::kI32, DType::kI64}) {
    const TestTensor zero = zeros({1}, t);
    const TestTensor q = quantized(x, scale, zero, first, DType::kI8, -128, 127);
    expect_op(Case("quantized_decomposed.quantize_per_tensor.tensor")
                  .in(x)
                  .in(scale)
                  .in(zero)
                  .integer(-128)
                  .integer(127)
                  .none()
                  .out(DType::kI8, x.dims),
              {q}, kExact);
    expect_op(Case("quantized_decomposed.dequantize_per_tensor.tensor")
                  .in(q)
                  .in(scale)
                  .in(zero)
                  .integer(-128)
                  .integer(127)
                  .none()
                  .none()
                  .out(DType::kF32, x.dims),
              {dequantized(q, scale, zero, first, DType::kF32)}, kExact);
  }
}

TEST(Affine, PerToken) {
  const TestTensor x = numbers({2, 3, 5});
  const TestTensor scale = scales({2, 3, 1});
  const TestTensor zero = zeros({2, 3, 1});
  const Entry entry = [](int64_t i) { return i / 5; };
  const TestTensor q = quantized(x, scale, zero, entry, DType::kI8, -128, 127);
  expect_op(Case("quantized_decomposed.quantize_per_token.default")
                .in(x)
                .in(scale)
                .in(zero)
                .integer(-128)
                .integer(127)
                .none()
                .out(DType::kI8, x.dims),
            {q}, kExact);
  expect_op(Case("quantized_decomposed.dequantize_per_token.default")
                .in(q)
                .in(scale)
                .in(zero)
                .integer(-128)
                .integer(127)
                .none()
                .none()
                .out(DType::kF16, x.dims),
            {dequantized(q, scale, zero, entry, DType::kF16)}, {0, 1e-3});
}

TEST(Affine, PerChannel) {
  const TestTensor x = numbers({2, 4, 3});
  const TestTensor zero = zeros({4});
  const TestTensor scale = scales({4});
  const TestTensor none = make(DType::kI32, {4}, [](int64_t) { return 0.0; });
  const Entry entry = [](int64_t i) { return i / 3 % 4; };
  for (const int64_t axis : {1, -2}) {
    const TestTensor q = quantized(x, scale, zero, entry, DType::kI8, -128, 127);
    expect_op(Case("quantized_decomposed.quantize_per_channel.default")
                  .in(x)
                  .in(scale)
                  .in(zero)
                  .integer(axis)
                  .integer(-128)
                  .integer(127)
                  .none()
                  .out(DType::kI8, x.dims),
              {q}, kExact);
    expect_op(Case("quantized_decomposed.dequantize_per_channel.default")
                  .in(q)
                  .in(scale)
                  .none()
                  .integer(axis)
                  .integer(-128)
                  .integer(127)
                  .none()
                  .none()
                  .out(DType::kF32, x.dims),
              {dequantized(q, scale, none, entry, DType::kF32)}, kExact);
  }
}

TEST(Affine, Blocks) {
  const TestTensor x = numbers({6, 10});
  const TestTensor scale = scales({3, 2});
  const TestTensor zero = zeros({3, 2}, DType::kI8);
  const Entry entry = [](int64_t i) { return i / 10 / 2 * 2 + i % 10 / 5; };
  const TestTensor q = quantized(x, scale, zero, entry, DType::kI8, -8, 7);
  expect_op(Case("torchao.quantize_affine.default")
                .in(x)
                .ints({2, 5})
                .in(scale)
                .in(zero)
                .none()
                .integer(-8)
                .integer(7)
                .out(DType::kI8, x.dims),
            {q}, kExact);
  expect_op(Case("torchao.quantize_affine.default")
                .in(x)
                .ints({2, 5})
                .in(scale)
                .in(zero)
                .none()
                .none()
                .none()
                .out(DType::kI8, x.dims),
            {quantized(x, scale, zero, entry, DType::kI8, -128, 127)}, kExact);
  expect_op(Case("torchao.dequantize_affine.default")
                .in(q)
                .ints({2, 5})
                .in(scale)
                .in(zero)
                .none()
                .integer(-8)
                .integer(7)
                .integer(6)
                .out(DType::kF32, x.dims),
            {dequantized(q, scale, zero, entry, DType::kF32)}, kExact);
}

TEST(Affine, Contradictions) {
  const TestTensor x = numbers({6, 10});
  expect_error(Case("torchao.quantize_affine.default")
                   .in(x)
                   .ints({4, 5})
                   .in(scales({3, 2}))
                   .none()
                   .none()
                   .none()
                   .none()
                   .out(DType::kI8, x.dims),
               "block_size [4, 5] does not divide x [6, 10]");
  expect_error(Case("torchao.quantize_affine.default")
                   .in(x)
                   .ints({2, 5})
                   .in(scales({3, 3}))
                   .none()
                   .none()
                   .none()
                   .none()
                   .out(DType::kI8, x.dims),
               "scale (value 2) shape: expected 6 elements for x [6, 10], got [3, 3]");
  expect_error(Case("quantized_decomposed.quantize_per_channel.default")
                   .in(x)
                   .in(scales({6}))
                   .none()
                   .integer(2)
                   .integer(0)
                   .integer(255)
                   .none()
                   .out(DType::kU8, x.dims),
               "dim: expected -2 to 1, got 2");
}

}  // namespace
}  // namespace pteryx::ops::testing
