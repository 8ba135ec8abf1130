// One rotary embedding as numbers: what its arguments say, for the plan and the kernels of the CPU.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "pteryx/ops/op.h"

namespace pteryx::ops::rope {

// Arguments of a call with queries and keys, and of one with interleaved (cos, sin) pairs.
enum Position : uint8_t { kXq, kXk, kCos, kSin, kStart };
enum InterleavedPosition : uint8_t { kX, kFreqs };

enum class Layout : uint8_t { kAdjacent, kHalves, kInterleaved };

// x has rows of `size` elements, [batch, length, heads] of them or, where heads come first, [batch,
// heads, length]. The tables have rows for [batch, position, head].
struct Rope {
  Layout layout = Layout::kAdjacent;
  int64_t start = 0;  // table row of position 0
  int64_t length = 0;
  int64_t size = 0;
  int64_t rotary = 0;  // leading elements of a row that turn
  int64_t heads_q = 1;
  int64_t heads_k = 1;
  bool heads_first = false;
  int64_t positions = 0;     // that the tables have
  int64_t batch_stride = 0;  // in rows of the tables; 0 where they have one for all
  int64_t position_stride = 1;
  int64_t head_stride = 0;

  // The row of the tables for row i of x, which has so many heads.
  int64_t table_row(int64_t heads, int64_t i) const;
};

// Reads `start` as well. Errors: kInvalidArgument for shapes that contradict each other and tables
// that are too short, kInvalidProgram for a call without two results.
Result<Rope> describe(const Node& n);
// The CPU kernel that is not the reference.
Result<bool> fast(const Node& n, const Host& h, CpuContext& c);

}  // namespace pteryx::ops::rope
