// Products of matrices of f32: a panel of b, [depth, columns], is gathered where it stays in the
// second-level cache, and multiplied with many rows of a in tiles of registers.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pteryx/cpu/gemm.cpp"
#include <algorithm>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "pteryx/cpu/functions-inl.h"
#include "pteryx/cpu/gemm.h"
#include "pteryx/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pteryx::cpu {
namespace HWY_NAMESPACE {
namespace {

constexpr size_t kColumns = kTileVectors * kLanes;  // the most that a panel has
constexpr size_t kDepth = 128;                      // of k in a panel
constexpr size_t kMostRows = 512;                   // of a range
constexpr size_t kFewestRows = 64;                  // of one of several ranges

// Columns that lie together in an image.
struct Segment {
  size_t from;
  size_t column;
  size_t count;
};

struct Scratch {
  HWY_ALIGN float panel[kDepth * kColumns + kLanes];
  HWY_ALIGN uint32_t words[kDepth / 2 * kColumns];
  HWY_ALIGN float sums[kMostRows * kColumns];
  Segment segments[kColumns];
};

size_t scratch_size() { return sizeof(Scratch); }

GemmItems cut(const Gemm& g, size_t threads, size_t others) {
  GemmItems items;
  const size_t vectors = (g.n + kLanes - 1) / kLanes;
  items.blocks = (vectors + kTileVectors - 1) / kTileVectors;
  // Enough items that no thread waits long for the others.
  const size_t wanted = threads == 1 ? 1 : 6 * threads;
  const size_t there = std::max<size_t>(items.blocks * (others + 1), 1);
  const size_t split =
      std::min((wanted + there - 1) / there, std::max<size_t>(g.m / kFewestRows, 1));
  const size_t ranges = std::max(split, (g.m + kMostRows - 1) / kMostRows);
  items.rows = ((g.m + ranges - 1) / ranges + kTileRows - 1) / kTileRows * kTileRows;
  items.ranges = (g.m + items.rows - 1) / items.rows;
  return items;
}

// The columns of a block: blocks differ by a vector at most.
struct Block {
  size_t first;
  size_t columns;
  size_t vectors;
};
HWY_INLINE Block block_of(const Gemm& g, const GemmItems& items, size_t block) {
  const size_t vectors = (g.n + kLanes - 1) / kLanes;
  const size_t each = vectors / items.blocks;
  const size_t more = vectors % items.blocks;
  const size_t first = (block * each + std::min(block, more)) * kLanes;
  const size_t own = each + (block < more ? 1 : 0);
  return {first, std::min(own * kLanes, g.n - first), own};
}

size_t find_segments(const Right& b, const Block& block, Segment* segments) {
  if (b.kind != RightKind::kPatches) {
    segments[0] = {block.first, 0, block.columns};
    return 1;
  }
  size_t count = 0;
  size_t column = 0;
  while (column < block.columns) {
    const size_t at = block.first + column;
    const size_t x = at % b.width;
    const size_t line = at / b.width;
    const size_t length = std::min(b.width - x, block.columns - column);
    segments[count++] = {line / b.height * b.plane + line % b.height * b.row + x, column, length};
    column += length;
  }
  return count;
}

// Where fewer than a vector is left, the last vector is copied again from its end, or, of patches,
// with what lies behind it, which the next segment overwrites.
HWY_INLINE void copy_segment(const float* HWY_RESTRICT from, size_t count, bool spare,
                             float* HWY_RESTRICT to) {
  const Floats d;
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
  if (i == count) return;
  if (spare) return hn::StoreU(hn::LoadU(d, from + i), d, to + i);
  if (count >= kLanes) {
    i = count - kLanes;
    return hn::StoreU(hn::LoadU(d, from + i), d, to + i);
  }
  for (; i < count; ++i) to[i] = from[i];
}

HWY_INLINE void gather(const Right& b, const Block& block, size_t segments, size_t k, size_t depth,
                       Scratch& s) {
  const size_t width = block.vectors * kLanes;
  const bool patches = b.kind == RightKind::kPatches;
  if (b.kind == RightKind::kColumns || b.kind == RightKind::kHalfColumns) {
    const size_t bytes = b.kind == RightKind::kColumns ? 4 : 2;
    const auto* from = static_cast<const uint8_t*>(b.data) + (block.first * b.stride + k) * bytes;
    void* to = bytes == 4 ? static_cast<void*>(s.panel) : s.words;
    transpose_words(from, b.stride * bytes, block.columns, depth * bytes,
                    static_cast<uint32_t*>(to), width);
    if (bytes == 2) widen_pairs(s.words, depth, width, s.panel);
    return;
  }
  const auto* data = static_cast<const float*>(b.data);
  for (size_t i = 0; i < depth; ++i) {
    const float* from = data + (patches ? b.starts[k + i] : (k + i) * b.stride);
    float* to = s.panel + i * width;
    for (size_t j = 0; j < segments; ++j)
      copy_segment(from + s.segments[j].from, s.segments[j].count, patches,
                   to + s.segments[j].column);
  }
}

template <size_t kVectors>
HWY_INLINE void multiply_block(const Gemm& g, const Block& block, size_t first, size_t rows,
                               Scratch& s) {
  constexpr size_t kWidth = kVectors * kLanes;
  const size_t segments = find_segments(g.b, block, s.segments);
  std::memset(s.sums, 0, rows * kWidth * sizeof(float));
  if (block.columns < kWidth) std::memset(s.panel, 0, sizeof(s.panel));
  for (size_t k = 0; k < g.k; k += kDepth) {
    const size_t depth = std::min(kDepth, g.k - k);
    gather(g.b, block, segments, k, depth, s);
    multiply_rows<kVectors>(rows, g.a + first * g.a_row + k, g.a_row, s.panel, kWidth, depth,
                            s.sums, kWidth);
  }
  for (size_t r = 0; r < rows; ++r)
    finish_row(g.finish, s.sums + r * kWidth, first + r, block.first, block.columns,
               g.y + (first + r) * g.y_row + block.first);
}

void multiply_item(const Gemm& g, const GemmItems& items, size_t item, void* scratch) {
  Scratch& s = *static_cast<Scratch*>(scratch);
  const Block block = block_of(g, items, item % items.blocks);
  const size_t first = item / items.blocks * items.rows;
  const size_t rows = std::min(items.rows, g.m - first);
  static_assert(kTileVectors == 2 || kTileVectors == 4);
  if (block.vectors == 1) return multiply_block<1>(g, block, first, rows, s);
  if (block.vectors == 2) return multiply_block<2>(g, block, first, rows, s);
  if constexpr (kTileVectors == 4) {
    if (block.vectors == 3) return multiply_block<3>(g, block, first, rows, s);
    multiply_block<4>(g, block, first, rows, s);
  }
}

void finish_all(const Finish& f, size_t rows, size_t columns, float* y) {
  for (size_t r = 0; r < rows; ++r) finish_row(f, y + r * columns, r, 0, columns, y + r * columns);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pteryx::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pteryx::cpu {
HWY_EXPORT(cut);
HWY_EXPORT(scratch_size);
HWY_EXPORT(multiply_item);
HWY_EXPORT(finish_all);

GemmItems cut_gemm(const Gemm& g, size_t threads, size_t others) {
  if (g.m == 0 || g.n == 0) return {};
  return HWY_DYNAMIC_DISPATCH(cut)(g, threads, others);
}
size_t gemm_scratch_bytes() { return HWY_DYNAMIC_DISPATCH(scratch_size)(); }
void multiply(const Gemm& g, const GemmItems& items, size_t item, void* scratch) {
  HWY_DYNAMIC_DISPATCH(multiply_item)(g, items, item, scratch);
}
void finish(const Finish& f, size_t rows, size_t columns, float* y) {
  HWY_DYNAMIC_DISPATCH(finish_all)(f, rows, columns, y);
}
}  // namespace pteryx::cpu
#endif
