// Products of matrices of f32: a panel of b, [depth, columns], is gathered where it stays in the
// first-level cache, and multiplied with many rows of a in tiles of registers. The few columns that
// whole vectors leave over, as in images of 7 by 7, are products of vectors along k.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pteryx/cpu/gemm.cpp"
#include <algorithm>

#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "pteryx/base/checked.h"
#include "pteryx/cpu/functions-inl.h"
#include "pteryx/cpu/gemm.h"
#include "pteryx/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pteryx::cpu {
namespace HWY_NAMESPACE {
namespace {

constexpr size_t kColumns = kTileVectors * kLanes;  // the most that a panel has
constexpr size_t kDepth = 96;                       // of k in a panel
constexpr size_t kMostRows = 512;                   // of a range
constexpr size_t kFewestRows = 24;                  // of one of several ranges
constexpr size_t kDirectRows = 32;  // that are too few to gather b for, where it lies in rows
// Of a tile: where there are 32 registers, 6 leave some for a vector of each column.
constexpr size_t kRows = kTileVectors == 4 ? 6 : kTileRows;
constexpr size_t kTails = kLanes / 4;  // columns, at most, that are left to products along k
constexpr size_t kLine = 16;           // floats of a line of the cache
constexpr size_t kSumsRow = kColumns + kLanes;

struct Panel {
  HWY_ALIGN float columns[kDepth * kColumns + kLanes];  // [depth, width of the block]
  HWY_ALIGN float tails[kTails][kDepth];
};

// Columns that lie together in an image.
struct Segment {
  size_t from;
  size_t column;
  size_t count;
};

struct Scratch {
  Panel panel;
  HWY_ALIGN uint32_t words[kDepth / 2 * kColumns];
  HWY_ALIGN float sums[kMostRows * kSumsRow];
  Segment segments[kColumns + kTails];
};

size_t scratch_size() { return sizeof(Scratch); }

bool in_rows(const Right& b) { return b.kind == RightKind::kRows || b.kind == RightKind::kPatches; }
// Columns that are left to products along k.
HWY_INLINE size_t tails_of(const Gemm& g) {
  const size_t rest = g.n % kLanes;
  return in_rows(g.b) && g.n > kLanes && rest <= kTails ? rest : 0;
}
HWY_INLINE size_t vectors_of(const Gemm& g) { return (g.n - tails_of(g) + kLanes - 1) / kLanes; }
HWY_INLINE size_t panels_along_k(const Gemm& g) { return (g.k + kDepth - 1) / kDepth; }

// Enough that no thread waits long for the others.
size_t wanted_items(size_t threads) { return threads == 1 ? 1 : 6 * threads; }

GemmItems cut(const Gemm& g, size_t threads, size_t others) {
  GemmItems items;
  items.blocks = (vectors_of(g) + kTileVectors - 1) / kTileVectors;
  const size_t wanted = wanted_items(threads);
  const size_t there = std::max<size_t>(items.blocks * (others + 1), 1);
  const size_t split =
      std::min((wanted + there - 1) / there, std::max<size_t>(g.m / kFewestRows, 1));
  const size_t ranges = std::max(split, (g.m + kMostRows - 1) / kMostRows);
  items.rows = ((g.m + ranges - 1) / ranges + kRows - 1) / kRows * kRows;
  items.rows = std::min(items.rows, kMostRows);
  items.ranges = (g.m + items.rows - 1) / items.rows;
  return items;
}

Panels count_panels(const Gemm& g, const GemmItems& items) {
  if (items.ranges < 2) return {};
  const size_t count = items.blocks * panels_along_k(g);
  return {count, count * sizeof(Panel)};
}

// Up to kMostRows, rows are only cut where there are fewer blocks than items wanted.
size_t most_bytes(const Gemm& g, size_t threads) {
  size_t blocks = (vectors_of(g) + kTileVectors - 1) / kTileVectors;
  if (g.m <= kMostRows)
    blocks = g.m < 2 * kFewestRows ? 0 : std::min(blocks, wanted_items(threads) - 1);
  return saturating_mul(saturating_mul(blocks, panels_along_k(g)), sizeof(Panel));
}

// The columns of a block: blocks differ by a vector at most.
struct Block {
  size_t first;
  size_t columns;  // without tails
  size_t vectors;
  size_t tails;
};
HWY_INLINE Block block_of(const Gemm& g, const GemmItems& items, size_t block) {
  const size_t vectors = vectors_of(g);
  const size_t each = vectors / items.blocks;
  const size_t more = vectors % items.blocks;
  const size_t first = (block * each + std::min(block, more)) * kLanes;
  const size_t own = each + (block < more ? 1 : 0);
  const size_t tails = block + 1 == items.blocks ? tails_of(g) : 0;
  return {first, std::min(own * kLanes, g.n - first), own, tails};
}

size_t find_segments(const Right& b, size_t first, size_t columns, Segment* segments) {
  if (b.kind != RightKind::kPatches) {
    segments[0] = {first, 0, columns};
    return 1;
  }
  size_t count = 0;
  size_t column = 0;
  while (column < columns) {
    const size_t at = first + column;
    const size_t x = at % b.width;
    const size_t line = at / b.width;
    const size_t length = std::min(b.width - x, columns - column);
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

// Rows k.. of b as a panel of columns.
HWY_INLINE void gather(const Gemm& g, const Block& block, size_t k, Scratch& s, Panel& to) {
  const Right& b = g.b;
  const size_t width = block.vectors * kLanes;
  const size_t depth = std::min(kDepth, g.k - k);
  if (!in_rows(b)) {
    const size_t bytes = b.kind == RightKind::kColumns ? 4 : 2;
    const auto* from = static_cast<const uint8_t*>(b.data) + (block.first * b.stride + k) * bytes;
    void* words = bytes == 4 ? static_cast<void*>(to.columns) : s.words;
    transpose_words(from, b.stride * bytes, block.columns, depth * bytes,
                    static_cast<uint32_t*>(words), width);
    if (bytes == 2) widen_pairs(s.words, depth, width, to.columns);
    return;
  }
  const bool patches = b.kind == RightKind::kPatches;
  const auto row_of = [&](size_t i) {
    return static_cast<const float*>(b.data) + (patches ? b.starts[k + i] : (k + i) * b.stride);
  };
  if (block.columns < width) std::memset(to.columns, 0, depth * width * sizeof(float));
  const size_t segments = find_segments(b, block.first, block.columns, s.segments);
  for (size_t i = 0; i < depth; ++i) {
    const float* const from = row_of(i);
    float* const row = to.columns + i * width;
    for (size_t j = 0; j < segments; ++j)
      copy_segment(from + s.segments[j].from, s.segments[j].count, patches,
                   row + s.segments[j].column);
  }
  for (size_t t = 0; t < block.tails; ++t) {
    find_segments(b, block.first + block.columns + t, 1, s.segments);
    for (size_t i = 0; i < depth; ++i) to.tails[t][i] = row_of(i)[s.segments[0].from];
  }
}

// sums[r, :] (+)= sum over i < depth of a[r, i] * b[i, :]. The rows of a at `next` are asked for.
template <size_t kSome, size_t kVectors>
HWY_INLINE void multiply_sums(const float* HWY_RESTRICT a, size_t a_row,
                              const float* HWY_RESTRICT b, size_t b_row, size_t depth, bool add,
                              const float* next, float* HWY_RESTRICT sums) {
  const Floats d;
  V sum[kSome][kVectors];
  PTERYX_UNROLL for (size_t r = 0; r < kSome; ++r) {
    PTERYX_UNROLL for (size_t v = 0; v < kVectors; ++v) sum[r][v] =
        add ? hn::LoadU(d, sums + r * kSumsRow + v * kLanes) : hn::Zero(d);
  }
  for (size_t line = 0; line < depth; line += kLine) {
    PTERYX_UNROLL for (size_t r = 0; r < kSome; ++r) hwy::Prefetch(next + r * a_row + line);
    const size_t end = std::min(line + kLine, depth);
    for (size_t i = line; i < end; ++i) {
      V w[kVectors];
      PTERYX_UNROLL for (size_t v = 0; v < kVectors; ++v) w[v] =
          hn::LoadU(d, b + i * b_row + v * kLanes);
      PTERYX_UNROLL for (size_t r = 0; r < kSome; ++r) {
        const V x = hn::Set(d, a[r * a_row + i]);
        PTERYX_UNROLL for (size_t v = 0; v < kVectors; ++v) sum[r][v] =
            hn::MulAdd(x, w[v], sum[r][v]);
      }
    }
  }
  PTERYX_UNROLL for (size_t r = 0; r < kSome; ++r) {
    PTERYX_UNROLL for (size_t v = 0; v < kVectors; ++v)
        hn::StoreU(sum[r][v], d, sums + r * kSumsRow + v * kLanes);
  }
}

// The same for columns that lie along k.
HWY_INLINE void multiply_tails(const float* HWY_RESTRICT a, size_t a_row, size_t rows,
                               const float* HWY_RESTRICT tails, size_t count, size_t depth,
                               bool add, float* HWY_RESTRICT sums) {
  const Floats d;
  for (size_t t = 0; t < count; ++t, tails += kDepth) {
    for (size_t r = 0; r < rows; ++r) {
      const float* const x = a + r * a_row;
      V sum = hn::Zero(d);
      size_t i = 0;
      for (; i + kLanes <= depth; i += kLanes)
        sum = hn::MulAdd(hn::LoadU(d, x + i), hn::Load(d, tails + i), sum);
      if (i < depth)
        sum = hn::MulAdd(load_part(d, x + i, depth - i), load_part(d, tails + i, depth - i), sum);
      float& to = sums[r * kSumsRow + t];
      to = (add ? to : 0.0F) + hn::GetLane(hn::SumOfLanes(d, sum));
    }
  }
}

// Rows of a product with one panel.
struct Step {
  size_t rows;
  const float* a;
  size_t a_row;
  const float* b;
  size_t b_row;
  const float* tails;
  size_t depth;
  bool add;
};

template <size_t kSome, size_t kVectors>
HWY_INLINE void multiply_some(const Step& p, const Block& block, size_t r, float* sums) {
  const float* const a = p.a + r * p.a_row;
  const float* const next = r + kSome < p.rows ? a + kSome * p.a_row : a;
  multiply_sums<kSome, kVectors>(a, p.a_row, p.b, p.b_row, p.depth, p.add, next, sums);
  multiply_tails(a, p.a_row, kSome, p.tails, block.tails, p.depth, p.add, sums + kVectors * kLanes);
}

template <size_t kVectors>
HWY_INLINE void multiply_some(const Step& p, const Block& block, size_t r, size_t rows,
                              float* sums) {
  static_assert(kRows == 4 || kRows == 6);
  if (rows == kRows) return multiply_some<kRows, kVectors>(p, block, r, sums);
  if constexpr (kRows == 6) {
    if (rows == 5) return multiply_some<5, kVectors>(p, block, r, sums);
    if (rows == 4) return multiply_some<4, kVectors>(p, block, r, sums);
  }
  if (rows == 3) return multiply_some<3, kVectors>(p, block, r, sums);
  if (rows == 2) return multiply_some<2, kVectors>(p, block, r, sums);
  multiply_some<1, kVectors>(p, block, r, sums);
}

// Asks for a share of the columns of b that the next panel is made of, while this one is
// multiplied.
HWY_INLINE void fetch_columns(const Gemm& g, const Block& block, size_t k, size_t share,
                              size_t shares) {
  const size_t bytes = g.b.kind == RightKind::kColumns ? 4 : 2;
  const size_t depth = std::min(kDepth, g.k - k);
  const auto* const from = static_cast<const uint8_t*>(g.b.data);
  for (size_t c = block.columns * share / shares; c < block.columns * (share + 1) / shares; ++c) {
    const uint8_t* const row = from + ((block.first + c) * g.b.stride + k) * bytes;
    for (size_t i = 0; i < depth * bytes; i += kLine * sizeof(float)) hwy::Prefetch(row + i);
  }
}

// Sums that one panel completes are finished tile by tile, where the cache still has them.
template <size_t kVectors>
HWY_NOINLINE void multiply_block(const Gemm& g, const Block& block, const Panel* panels,
                                 size_t first, size_t rows, Scratch& s) {
  constexpr size_t kWidth = kVectors * kLanes;
  const bool direct = panels == nullptr && g.b.kind == RightKind::kRows && rows < kDirectRows &&
                      block.columns == kWidth && block.tails == 0;
  const bool alone = g.k <= kDepth;
  for (size_t k = 0; k < g.k || k == 0; k += kDepth) {
    const size_t depth = std::min(kDepth, g.k - k);
    const bool last = k + depth == g.k;
    const Panel* panel = panels != nullptr ? panels + k / kDepth : &s.panel;
    Step p{rows,   g.a + first * g.a_row + k, g.a_row, panel->columns,
           kWidth, panel->tails[0],           depth,   k > 0};
    if (direct) {
      p.b = static_cast<const float*>(g.b.data) + k * g.b.stride + block.first;
      p.b_row = g.b.stride;
    } else if (panels == nullptr) {
      gather(g, block, k, s, s.panel);
    }
    const bool fetch = panels == nullptr && !in_rows(g.b) && !last;
    for (size_t r = 0; r < rows; r += kRows) {
      if (fetch) fetch_columns(g, block, k + kDepth, r / kRows, (rows + kRows - 1) / kRows);
      const size_t own = std::min(kRows, rows - r);
      float* const sums = s.sums + (alone ? 0 : r * kSumsRow);
      multiply_some<kVectors>(p, block, r, own, sums);
      for (size_t i = 0; last && i < own; ++i)
        finish_row(g.finish, sums + i * kSumsRow, first + r + i, block.first,
                   block.columns + block.tails, g.y + (first + r + i) * g.y_row + block.first);
    }
  }
}

void multiply_item(const Gemm& g, const GemmItems& items, size_t item, void* scratch) {
  Scratch& s = *static_cast<Scratch*>(scratch);
  const size_t index = item % items.blocks;
  const Block block = block_of(g, items, index);
  const size_t first = item / items.blocks * items.rows;
  const size_t rows = std::min(items.rows, g.m - first);
  const auto* panels = static_cast<const Panel*>(g.panels);
  if (panels != nullptr) panels += index * panels_along_k(g);
  static_assert(kTileVectors == 2 || kTileVectors == 4);
  if (block.vectors == 1) return multiply_block<1>(g, block, panels, first, rows, s);
  if (block.vectors == 2) return multiply_block<2>(g, block, panels, first, rows, s);
  if constexpr (kTileVectors == 4) {
    if (block.vectors == 3) return multiply_block<3>(g, block, panels, first, rows, s);
    multiply_block<4>(g, block, panels, first, rows, s);
  }
}

void gather_one(const Gemm& g, const GemmItems& items, size_t panel, void* scratch) {
  const Block block = block_of(g, items, panel / panels_along_k(g));
  gather(g, block, panel % panels_along_k(g) * kDepth, *static_cast<Scratch*>(scratch),
         static_cast<Panel*>(g.panels)[panel]);
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
HWY_EXPORT(count_panels);
HWY_EXPORT(most_bytes);
HWY_EXPORT(gather_one);
HWY_EXPORT(multiply_item);
HWY_EXPORT(finish_all);

GemmItems cut_gemm(const Gemm& g, size_t threads, size_t others) {
  if (g.m == 0 || g.n == 0) return {};
  return HWY_DYNAMIC_DISPATCH(cut)(g, threads, others);
}
size_t gemm_scratch_bytes() { return HWY_DYNAMIC_DISPATCH(scratch_size)(); }
Panels panels_of(const Gemm& g, const GemmItems& items) {
  return HWY_DYNAMIC_DISPATCH(count_panels)(g, items);
}
size_t most_panel_bytes(const Gemm& g, size_t threads) {
  if (g.m == 0 || g.n == 0) return 0;
  return HWY_DYNAMIC_DISPATCH(most_bytes)(g, threads);
}
void gather_panel(const Gemm& g, const GemmItems& items, size_t panel, void* scratch) {
  HWY_DYNAMIC_DISPATCH(gather_one)(g, items, panel, scratch);
}
void multiply(const Gemm& g, const GemmItems& items, size_t item, void* scratch) {
  HWY_DYNAMIC_DISPATCH(multiply_item)(g, items, item, scratch);
}
void finish(const Finish& f, size_t rows, size_t columns, float* y) {
  HWY_DYNAMIC_DISPATCH(finish_all)(f, rows, columns, y);
}
}  // namespace pteryx::cpu
#endif
