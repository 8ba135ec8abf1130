// The element formats of GGUF and safetensors, decoded to floats. Blocks of the K family are 256
// elements with scales of their own, quantised once more; the others are 32 elements.
// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <cstring>

#include "pteryx/base/dtype.h"
#include "pteryx/convert/checkpoint.h"

namespace pteryx::convert {
namespace {

template <typename T>
T load(const std::byte* p) {
  T v;
  std::memcpy(&v, p, sizeof(T));
  return v;
}
float half_at(const std::byte* p) { return half_to_float(load<uint16_t>(p)); }
int byte_at(const std::byte* p, int i) { return std::to_integer<int>(p[i]); }
int low(int byte) { return byte & 15; }
int high(int byte) { return byte >> 4; }

void f32(const std::byte* b, float* y) { *y = load<float>(b); }
void f16(const std::byte* b, float* y) { *y = half_at(b); }
void bf16(const std::byte* b, float* y) { *y = bfloat16_to_float(load<uint16_t>(b)); }

// Byte j holds elements j and j + 16.
void q4_0(const std::byte* b, float* y) {
  const float d = half_at(b);
  for (int j = 0; j < 16; ++j) {
    const int v = byte_at(b + 2, j);
    y[j] = static_cast<float>(low(v) - 8) * d;
    y[j + 16] = static_cast<float>(high(v) - 8) * d;
  }
}
void q4_codes(const std::byte* b, int8_t* codes) {
  for (int j = 0; j < 16; ++j) {
    const int v = byte_at(b, j);
    codes[j] = static_cast<int8_t>(low(v) - 8);
    codes[j + 16] = static_cast<int8_t>(high(v) - 8);
  }
}
void q4_0_codes(const std::byte* b, int8_t* codes, float* scales, float* /*minimums*/) {
  *scales = half_at(b);
  q4_codes(b + 2, codes);
}
// What code 0 stands for is in the middle of a group, eight scales above its minimum.
void q4_1_codes(const std::byte* b, int8_t* codes, float* scales, float* minimums) {
  *scales = half_at(b);
  *minimums = half_at(b + 2) + 8 * *scales;
  q4_codes(b + 4, codes);
}
void q4_1(const std::byte* b, float* y) {
  const float d = half_at(b);
  const float m = half_at(b + 2);
  for (int j = 0; j < 16; ++j) {
    const int v = byte_at(b + 4, j);
    y[j] = static_cast<float>(low(v)) * d + m;
    y[j + 16] = static_cast<float>(high(v)) * d + m;
  }
}
// The fifth bit of element i is bit i of a word.
int fifth(uint32_t bits, int i) { return static_cast<int>((bits >> i) & 1) << 4; }
void q5_0(const std::byte* b, float* y) {
  const float d = half_at(b);
  const auto bits = load<uint32_t>(b + 2);
  for (int j = 0; j < 16; ++j) {
    const int v = byte_at(b + 6, j);
    y[j] = static_cast<float>((low(v) | fifth(bits, j)) - 16) * d;
    y[j + 16] = static_cast<float>((high(v) | fifth(bits, j + 16)) - 16) * d;
  }
}
void q5_1(const std::byte* b, float* y) {
  const float d = half_at(b);
  const float m = half_at(b + 2);
  const auto bits = load<uint32_t>(b + 4);
  for (int j = 0; j < 16; ++j) {
    const int v = byte_at(b + 8, j);
    y[j] = static_cast<float>(low(v) | fifth(bits, j)) * d + m;
    y[j + 16] = static_cast<float>(high(v) | fifth(bits, j + 16)) * d + m;
  }
}
void q8_0(const std::byte* b, float* y) {
  const float d = half_at(b);
  for (int j = 0; j < 32; ++j) y[j] = static_cast<float>(load<int8_t>(b + 2 + j)) * d;
}

struct ScaleMin {
  float scale, min;
};
// Eight 6-bit scales and minima in 12 bytes: four of each in the low bits, the upper two bits of
// those bytes belong to the other four.
ScaleMin scale_min(const std::byte* p, int i) {
  if (i < 4)
    return {static_cast<float>(byte_at(p, i) & 63), static_cast<float>(byte_at(p, i + 4) & 63)};
  const int both = byte_at(p, i + 4);
  return {static_cast<float>(low(both) | (byte_at(p, i - 4) >> 6) << 4),
          static_cast<float>(high(both) | (byte_at(p, i) >> 6) << 4)};
}

// Pairs of 32 elements share 32 bytes: the first the low nibbles, the second the high ones.
void k4_or_k5(const std::byte* b, const std::byte* fifth_bits, const std::byte* codes, float* y) {
  const float d = half_at(b);
  const float m = half_at(b + 2);
  for (int i = 0; i < 8; ++i) {
    const ScaleMin s = scale_min(b + 4, i);
    const float scale = d * s.scale;
    const float min = m * s.min;
    const std::byte* c = codes + i / 2 * 32;
    for (int j = 0; j < 32; ++j) {
      int v = i % 2 == 0 ? low(byte_at(c, j)) : high(byte_at(c, j));
      if (fifth_bits != nullptr) v |= ((byte_at(fifth_bits, j) >> i) & 1) << 4;
      y[i * 32 + j] = static_cast<float>(v) * scale - min;
    }
  }
}
void q4_k(const std::byte* b, float* y) { k4_or_k5(b, nullptr, b + 16, y); }
void q4_k_codes(const std::byte* b, int8_t* codes, float* scales, float* minimums) {
  const float d = half_at(b);
  const float m = half_at(b + 2);
  for (int i = 0; i < 8; ++i) {
    const ScaleMin s = scale_min(b + 4, i);
    scales[i] = d * s.scale;
    minimums[i] = 8 * scales[i] - m * s.min;
    const std::byte* c = b + 16 + i / 2 * 32;
    for (int j = 0; j < 32; ++j) {
      const int v = i % 2 == 0 ? low(byte_at(c, j)) : high(byte_at(c, j));
      codes[i * 32 + j] = static_cast<int8_t>(v - 8);
    }
  }
}
void q5_k(const std::byte* b, float* y) { k4_or_k5(b, b + 16, b + 48, y); }

// Low nibbles (128 bytes), upper two bits (64), sixteen scales, then the scale of all. A half of
// 128 elements is four runs of 32.
void q6_k(const std::byte* b, float* y) {
  const float d = half_at(b + 208);
  for (int half = 0; half < 2; ++half) {
    const std::byte* lows = b + half * 64;
    const std::byte* highs = b + 128 + half * 32;
    const std::byte* scales = b + 192 + half * 8;
    for (int run = 0; run < 4; ++run) {
      for (int j = 0; j < 32; ++j) {
        const int v = byte_at(lows, j + run % 2 * 32);
        const int code = (run < 2 ? low(v) : high(v)) | ((byte_at(highs, j) >> (2 * run)) & 3) << 4;
        const auto scale = static_cast<float>(load<int8_t>(scales + run * 2 + j / 16));
        y[half * 128 + run * 32 + j] = d * scale * static_cast<float>(code - 32);
      }
    }
  }
}

constexpr std::array kFormats = {
    SourceFormat{SourceType::kF32, "F32", 1, 4, f32},
    SourceFormat{SourceType::kF16, "F16", 1, 2, f16},
    SourceFormat{SourceType::kBF16, "BF16", 1, 2, bf16},
    SourceFormat{SourceType::kQ4_0, "Q4_0", 32, 18, q4_0, q4_0_codes},
    SourceFormat{SourceType::kQ4_1, "Q4_1", 32, 20, q4_1, q4_1_codes, true},
    SourceFormat{SourceType::kQ5_0, "Q5_0", 32, 22, q5_0},
    SourceFormat{SourceType::kQ5_1, "Q5_1", 32, 24, q5_1},
    SourceFormat{SourceType::kQ8_0, "Q8_0", 32, 34, q8_0},
    SourceFormat{SourceType::kQ4_K, "Q4_K", 256, 144, q4_k, q4_k_codes, true},
    SourceFormat{SourceType::kQ5_K, "Q5_K", 256, 176, q5_k},
    SourceFormat{SourceType::kQ6_K, "Q6_K", 256, 210, q6_k},
};

}  // namespace

const SourceFormat& format(SourceType type) { return kFormats[static_cast<size_t>(type)]; }

}  // namespace pteryx::convert
