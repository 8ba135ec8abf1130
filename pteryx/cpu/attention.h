// Attention over a KV cache. A call does one block of rows of one head, so that threads can share
// the work; results do not depend on who does which.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

namespace pteryx::cpu {

enum class CacheKind : uint8_t { kF32, kF16 };

struct Attention {
  // Elements between rows, and between heads.
  struct Strides {
    size_t row = 0;
    size_t head = 0;
  };
  // What becomes of scores: a value is added, or false keeps a position out. Scores are no less
  // than the least f32: a row that sees nothing has the mean of all values.
  struct Mask {
    enum class Kind : uint8_t { kNone, kF32, kF16, kBool };
    Kind kind = Kind::kNone;
    const void* data = nullptr;
    size_t head = 0;  // elements between neighbours, 0 or more
    size_t row = 0;
    size_t position = 0;  // 0 or 1
  };
  const float* q = nullptr;
  const void* keys = nullptr;
  const void* values = nullptr;
  float* y = nullptr;
  CacheKind kind = CacheKind::kF32;  // of keys and values
  Strides q_strides;
  Strides k_strides;  // of values as well
  Strides y_strides;
  bool causal = true;  // row r sees positions up to start + r, else all
  size_t rows = 0;
  size_t heads = 0;
  size_t group = 1;  // heads to one of keys
  size_t size = 0;   // 256 at most
  size_t start = 0;
  size_t context = 0;  // positions: at least 1, and of causal ones more than start
  float scale = 1;
  Mask mask = {};
};

inline constexpr size_t kMostAttentionSize = 256;
inline constexpr size_t kAttentionRows = 32;  // of a block
inline size_t attention_blocks(const Attention& a) {
  return a.heads * ((a.rows + kAttentionRows - 1) / kAttentionRows);
}
size_t attention_scratch_bytes();  // for each thread, aligned to 64 bytes
void attend(const Attention& a, size_t block, void* scratch);

}  // namespace pteryx::cpu
