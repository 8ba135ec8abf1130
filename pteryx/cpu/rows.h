// Kernels over rows of f32: norms, gated activations and rotations. Each call does a range
// of rows or elements, so that threads can share the work; results do not depend on the ranges.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

namespace pteryx::cpu {

// y = x / sqrt(mean(x^2) + eps) * weight, for `rows` rows of `width`.
void rms_norm(const float* x, const float* weight, float eps, size_t rows, size_t width, float* y);
// y = (x - mean) / sqrt(variance + eps) * weight + bias; weight and bias may be null. Mean and 1 /
// sqrt of each row go to `stats`, [rows, 2], unless it is null.
void layer_norm(const float* x, const float* weight, const float* bias, float eps, size_t rows,
                size_t width, float* y, float* stats = nullptr);
// The same for one row of `channels` of `inner` elements, with a weight and a bias for each, and
// y * sigmoid(y) behind it where `silu` says so.
struct GroupNorm {
  size_t channels = 0;
  size_t inner = 0;
  const float* weight = nullptr;
  const float* bias = nullptr;
  float eps = 0;
  bool silu = false;
};
void group_norm(const GroupNorm& g, const float* x, float* y, float* stats);
// The sum of x / by, which may be finite where the sum of x is not.
float mean_of(const float* x, size_t count, float by);
// Where the largest of finite numbers is first; `count` where there are none, or one that is not
// finite.
size_t find_largest(const float* x, size_t count);
// y = (code - zero) * scale of the nearest code from -128 to 127, x / scale + zero.
void round_to_codes(const float* x, size_t count, float scale, float zero, float* y);
// y = gate / (1 + exp(-gate)) * up.
void silu_times(const float* gate, const float* up, size_t count, float* y);
void exp_all(const float* x, size_t count, float* y);
// Between f32 and the bits of f16, rounded to nearest even.
void to_f16(const float* x, size_t count, uint16_t* y);
void from_f16(const uint16_t* x, size_t count, float* y);

// Turns the heads of one token, [heads, size]; y may be x. Pairs are neighbours, with cos and sin
// of size / 2 values, or halves of a head apart, with cos and sin of size values.
enum class Pairs : unsigned char { kNeighbours, kHalves };
void rotate(const float* x, const float* cos, const float* sin, Pairs pairs, size_t heads,
            size_t size, float* y);

}  // namespace pteryx::cpu
