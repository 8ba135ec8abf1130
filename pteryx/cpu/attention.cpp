// Attention over a KV cache: blocks of positions, with the softmax carried from block to block. Few
// rows of queries read keys as they lie; more rows transpose a block of keys once and multiply
// tiles.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pteryx/cpu/attention.cpp"
#include <algorithm>
#include <limits>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "pteryx/cpu/attention.h"
#include "pteryx/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pteryx::cpu {
namespace HWY_NAMESPACE {
namespace {
using V = hn::Vec<Floats>;

constexpr size_t kPositions = 64;  // of a block: a multiple of the columns of a tile
constexpr size_t kMostSize = kMostAttentionSize;
constexpr size_t kDotRows = 4;  // up to which keys are not transposed
constexpr size_t kTile = kTileVectors * kLanes;
static_assert(kPositions % kTile == 0 && kMostSize % kTile == 0);

struct Scratch {
  HWY_ALIGN float queries[kAttentionRows * kMostSize];  // times scale
  HWY_ALIGN float keys[kPositions * kMostSize];         // [size, positions]
  HWY_ALIGN float rows[kPositions * kMostSize];         // keys or values as f32 of whole vectors
  HWY_ALIGN float scores[kAttentionRows * kPositions];
  HWY_ALIGN float sums[kAttentionRows * kMostSize];
  float most[kAttentionRows];
  float total[kAttentionRows];
};
size_t scratch_size() { return sizeof(Scratch); }

// A block of rows of one head, and a block of positions.
struct Block {
  size_t first;  // row
  size_t rows;
  size_t head;
  size_t width;  // size, up to whole tiles
  size_t position;
  size_t positions;
};

// Of the positions of the block, how many row r sees: the first ones.
size_t seen_by(const Attention& a, const Block& b, size_t r) {
  const size_t visible = a.causal ? std::min(a.start + b.first + r + 1, a.context) : a.context;
  return visible > b.position ? std::min(visible - b.position, b.positions) : 0;
}

// Rows of keys or values as f32, with 0 up to the width.
template <class T>
void copy_rows(const T* from, size_t from_row, size_t size, size_t rows, size_t width, float* to) {
  const Floats d;
  for (size_t r = 0; r < rows; ++r, from += from_row, to += width) {
    size_t i = 0;
    for (; i + kLanes <= size; i += kLanes) hn::Store(load_floats(d, from + i), d, to + i);
    if (i < size) {
      hn::Store(load_floats_part(d, from + i, size - i), d, to + i);
      i += kLanes;
    }
    for (; i < width; i += kLanes) hn::Store(hn::Zero(d), d, to + i);
  }
}

// Scores of one row of queries with positions, four at a time.
template <class T>
void dot_keys(const float* q, const T* keys, size_t row, size_t size, size_t positions, float* to) {
  const Floats d;
  for (size_t p = 0; p < positions; p += 4) {
    const T* key[4];
    V sum[4];
    PTERYX_UNROLL for (size_t r = 0; r < 4; ++r) {
      key[r] = keys + std::min(p + r, positions - 1) * row;
      sum[r] = hn::Zero(d);
    }
    size_t i = 0;
    for (; i + kLanes <= size; i += kLanes) {
      const V x = hn::Load(d, q + i);
      PTERYX_UNROLL for (size_t r = 0; r < 4; ++r) sum[r] =
          hn::MulAdd(x, load_floats(d, key[r] + i), sum[r]);
    }
    if (i < size) {
      const V x = hn::Load(d, q + i);  // 0 past the size
      PTERYX_UNROLL for (size_t r = 0; r < 4; ++r) sum[r] =
          hn::MulAdd(x, load_floats_part(d, key[r] + i, size - i), sum[r]);
    }
    const auto all = add_blocks(d, add_quads(d, sum[0], sum[1], sum[2], sum[3]));
    hn::Store(all, FourFloats(), to + p);
  }
}

template <class T>
void make_scores(const Attention& a, const Block& b, const T* keys, size_t row, Scratch& s) {
  if (b.rows <= kDotRows) {
    for (size_t r = 0; r < b.rows; ++r)
      dot_keys(s.queries + r * b.width, keys, row, a.size, b.positions, s.scores + r * kPositions);
    return;
  }
  copy_rows(keys, row, a.size, b.positions, b.width, s.rows);
  const void* from = s.rows;
  void* to = s.keys;
  transpose_words(static_cast<const uint8_t*>(from), b.width * sizeof(float), b.positions,
                  b.width * sizeof(float), static_cast<uint32_t*>(to), kPositions);
  std::memset(s.scores, 0, b.rows * kPositions * sizeof(float));
  for (size_t p = 0; p < b.positions; p += kTile) {
    multiply_rows<kTileVectors>(b.rows, s.queries, b.width, s.keys + p, kPositions, a.size,
                                s.scores + p, kPositions);
  }
}

constexpr float kLowest = std::numeric_limits<float>::lowest();

template <class T>
void add_mask(const T* mask, size_t step, size_t positions, float* scores) {
  const Floats d;
  const V lowest = hn::Set(d, kLowest);
  // NaN is not at least the lowest.
  const auto bounded = [lowest](V v)
                           HWY_ATTR { return hn::IfThenElse(hn::Ge(v, lowest), v, lowest); };
  for (size_t p = 0; p < positions; p += kLanes) {
    const size_t rest = positions - p;
    const V one = load_floats_part(d, mask, 1);
    const V m = step == 0       ? hn::Set(d, hn::GetLane(one))
                : rest < kLanes ? load_floats_part(d, mask + p, rest)
                                : load_floats(d, mask + p);
    hn::Store(bounded(hn::Add(hn::Load(d, scores + p), bounded(m))), d, scores + p);
  }
}

// Scores of row r with what the mask says of them.
void mask_scores(const Attention& a, const Block& b, size_t r, float* scores) {
  using Kind = Attention::Mask::Kind;
  const Attention::Mask& m = a.mask;
  const size_t at = b.head * m.head + (b.first + r) * m.row + b.position * m.position;
  switch (m.kind) {
    case Kind::kNone: return;
    case Kind::kF32:
      return add_mask(static_cast<const float*>(m.data) + at, m.position, b.positions, scores);
    case Kind::kF16:
      return add_mask(static_cast<const hwy::float16_t*>(m.data) + at, m.position, b.positions,
                      scores);
    case Kind::kBool: break;
  }
  const uint8_t* const seen = static_cast<const uint8_t*>(m.data) + at;
  for (size_t p = 0; p < b.positions; ++p)
    scores[p] = seen[p * m.position] != 0 ? scores[p] : kLowest;
}

// Scores become exp(score - the largest so far); sums made with a smaller one are scaled down.
void soften(const Attention& a, const Block& b, size_t r, Scratch& s) {
  const Floats d;
  const float infinity = std::numeric_limits<float>::infinity();
  float* scores = s.scores + r * kPositions;
  mask_scores(a, b, r, scores);
  for (size_t p = seen_by(a, b, r); p < kPositions; ++p) scores[p] = -infinity;
  V most = hn::Set(d, s.most[r]);
  for (size_t p = 0; p < kPositions; p += kLanes) most = hn::Max(most, hn::Load(d, scores + p));
  const float largest = hn::GetLane(hn::MaxOfLanes(d, most));
  // Nothing to see yet, or only minus infinity: 0 as the largest makes all of them 0.
  const V from = hn::Set(d, largest == -infinity ? 0.0F : largest);
  V total = hn::Zero(d);
  for (size_t p = 0; p < kPositions; p += kLanes) {
    const V e = exp_of(d, hn::Sub(hn::Load(d, scores + p), from));
    hn::Store(e, d, scores + p);
    total = hn::Add(total, e);
  }
  const V down = exp_of(d, hn::Sub(hn::Set(d, s.most[r]), from));
  s.total[r] = s.total[r] * hn::GetLane(down) + hn::GetLane(hn::SumOfLanes(d, total));
  if (largest > s.most[r]) {
    float* sums = s.sums + r * b.width;
    for (size_t i = 0; i < b.width; i += kLanes)
      hn::Store(hn::Mul(hn::Load(d, sums + i), down), d, sums + i);
  }
  s.most[r] = largest;
}

// Whether none of these is NaN or infinite. The width is of whole vectors.
bool all_finite(const float* rows, size_t row, size_t count, size_t width) {
  const Floats d;
  V odd = hn::Zero(d);  // x - x is 0 for all others
  for (size_t r = 0; r < count; ++r) {
    for (size_t i = 0; i < width; i += kLanes) {
      const V x = hn::LoadU(d, rows + r * row + i);
      odd = hn::Add(odd, hn::Sub(x, x));
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, odd)) == 0;
}

// Adds rows of values, each times its score, to kVectors vectors of sums.
template <size_t kVectors, class T>
HWY_INLINE void add_weighted(const float* scores, const T* values, size_t row, size_t positions,
                             float* sums) {
  const Floats d;
  V sum[kVectors];
  PTERYX_UNROLL for (size_t i = 0; i < kVectors; ++i) sum[i] = hn::Load(d, sums + i * kLanes);
  for (size_t p = 0; p < positions; ++p, values += row) {
    const V score = hn::Set(d, scores[p]);
    PTERYX_UNROLL for (size_t i = 0; i < kVectors; ++i) sum[i] =
        hn::MulAdd(score, load_floats(d, values + i * kLanes), sum[i]);
  }
  PTERYX_UNROLL for (size_t i = 0; i < kVectors; ++i) hn::Store(sum[i], d, sums + i * kLanes);
}

// Of one row of queries, without a copy of the values; of those that it sees alone.
template <class T>
void add_row(const Attention& a, const Block& b, size_t r, const T* values, size_t row,
             Scratch& s) {
  const Floats d;
  const float* scores = s.scores + r * kPositions;
  float* sums = s.sums + r * b.width;
  const size_t positions = seen_by(a, b, r);
  size_t i = 0;
  for (; i + 4 * kLanes <= a.size; i += 4 * kLanes)
    add_weighted<4>(scores, values + i, row, positions, sums + i);
  for (; i + kLanes <= a.size; i += kLanes)
    add_weighted<1>(scores, values + i, row, positions, sums + i);
  if (i == a.size) return;
  V sum = hn::Load(d, sums + i);
  for (size_t p = 0; p < positions; ++p) {
    const V v = load_floats_part(d, values + p * row + i, a.size - i);
    sum = hn::MulAdd(hn::Set(d, scores[p]), v, sum);
  }
  hn::Store(sum, d, sums + i);
}

template <class T>
void add_values(const Attention& a, const Block& b, const T* values, size_t row, Scratch& s) {
  if (b.rows <= kDotRows) {
    for (size_t r = 0; r < b.rows; ++r) add_row(a, b, r, values, row, s);
    return;
  }
  const float* from = s.rows;
  size_t from_row = b.width;
  if constexpr (sizeof(T) == sizeof(float)) {
    if (a.size == b.width) {
      from = values;
      from_row = row;
    }
  }
  if (from == s.rows) copy_rows(values, row, a.size, b.positions, b.width, s.rows);
  const auto add = [&](size_t first, size_t rows, size_t positions) HWY_ATTR {
    for (size_t i = 0; i < b.width; i += kTile) {
      multiply_rows<kTileVectors>(rows, s.scores + first * kPositions, kPositions, from + i,
                                  from_row, positions, s.sums + first * b.width + i, b.width);
    }
  };
  // What a row does not see has weight 0 there, times NaN or infinity NaN: then row by row.
  const size_t common = seen_by(a, b, 0);
  if (all_finite(from + common * from_row, from_row, b.positions - common, b.width)) {
    add(0, b.rows, b.positions);
  } else {
    for (size_t r = 0; r < b.rows; ++r) add(r, 1, seen_by(a, b, r));
  }
}

template <class T>
void attend_block(const Attention& a, Block b, Scratch& s) {
  const Floats d;
  const size_t row = a.k_strides.row;
  const T* keys = static_cast<const T*>(a.keys) + b.head / a.group * a.k_strides.head;
  const T* values = static_cast<const T*>(a.values) + b.head / a.group * a.k_strides.head;
  const V scale = hn::Set(d, a.scale);
  for (size_t r = 0; r < b.rows; ++r) {
    const float* q = a.q + (b.first + r) * a.q_strides.row + b.head * a.q_strides.head;
    copy_rows(q, a.size, a.size, 1, b.width, s.queries + r * b.width);
    for (size_t i = 0; i < b.width; i += kLanes) {
      float* at = s.queries + r * b.width + i;
      hn::Store(hn::Mul(hn::Load(d, at), scale), d, at);
      hn::Store(hn::Zero(d), d, s.sums + r * b.width + i);
    }
    s.most[r] = -std::numeric_limits<float>::infinity();
    s.total[r] = 0;
  }
  const size_t context = a.causal ? std::min(a.start + b.first + b.rows, a.context) : a.context;
  for (b.position = 0; b.position < context; b.position += kPositions) {
    b.positions = std::min(kPositions, context - b.position);
    make_scores(a, b, keys + b.position * row, row, s);
    for (size_t r = 0; r < b.rows; ++r) soften(a, b, r, s);
    add_values(a, b, values + b.position * row, row, s);
  }
  for (size_t r = 0; r < b.rows; ++r) {
    float* y = a.y + (b.first + r) * a.y_strides.row + b.head * a.y_strides.head;
    const float inverse = 1.0F / s.total[r];
    for (size_t i = 0; i < a.size; ++i) y[i] = s.sums[r * b.width + i] * inverse;
  }
}

void attend_one(const Attention& a, size_t block, void* scratch) {
  Block b{};
  b.head = block % a.heads;
  b.first = block / a.heads * kAttentionRows;
  b.rows = std::min(kAttentionRows, a.rows - b.first);
  b.width = (a.size + kTile - 1) / kTile * kTile;
  Scratch& s = *static_cast<Scratch*>(scratch);
  if (a.kind == CacheKind::kF16) return attend_block<hwy::float16_t>(a, b, s);
  attend_block<float>(a, b, s);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pteryx::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pteryx::cpu {
HWY_EXPORT(scratch_size);
HWY_EXPORT(attend_one);
size_t attention_scratch_bytes() { return HWY_DYNAMIC_DISPATCH(scratch_size)(); }
void attend(const Attention& a, size_t block, void* scratch) {
  HWY_DYNAMIC_DISPATCH(attend_one)(a, block, scratch);
}
}  // namespace pteryx::cpu
#endif
