// Attention against plain loops. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/base/dtype.h"
#include "pteryx/cpu/pool.h"
#include "pteryx/cpu/testing/aligned.h"
#include "pteryx/cpu/testing/each_target.h"
#include "pteryx/cpu/testing/plain.h"

namespace pteryx::cpu {
namespace {
using testing::Aligned;
using testing::for_each_target;
using testing::is_near;
using testing::normal_floats;
using testing::same_bits;

// How rows and heads lie: [rows, heads, size], or [heads, rows, size].
enum class Layout : uint8_t { kRowsFirst, kHeadsFirst };
Attention::Strides strides_of(Layout layout, size_t rows, size_t heads, size_t size) {
  if (layout == Layout::kRowsFirst) return {.row = heads * size, .head = size};
  return {.row = size, .head = rows * size};
}

struct Shape {
  size_t rows = 1, heads = 1, group = 1, size = 1, start = 0;
  size_t beyond = 0;  // positions behind the last row's
};

// A call, and the memory it has its tensors in.
struct Made {
  Attention call;
  std::vector<float> q, keys, values, y;
  std::vector<uint16_t> half_keys, half_values;
  std::vector<float> mask;  // -inf: kept out
  std::vector<uint16_t> half_mask;
  std::vector<uint8_t> seen;
};

Made make_call(const Shape& s, CacheKind kind, bool causal, Layout layout) {
  Made m;
  const size_t kv = s.heads / s.group;
  const size_t context = s.start + s.rows + s.beyond;
  m.q = normal_floats(s.rows * s.heads * s.size, 1);
  m.y.resize(m.q.size());
  m.keys = normal_floats(context * kv * s.size, 2);
  m.values = normal_floats(context * kv * s.size, 3);
  for (std::vector<float>* const cache : {&m.keys, &m.values}) {
    for (float& v : *cache) {
      const uint16_t half = float_to_half(v);
      v = half_to_float(half);
      (cache == &m.keys ? m.half_keys : m.half_values).push_back(half);
    }
  }
  m.call = {.kind = kind,
            .q_strides = strides_of(layout, s.rows, s.heads, s.size),
            .k_strides = strides_of(layout, context, kv, s.size),
            .y_strides = strides_of(layout, s.rows, s.heads, s.size),
            .causal = causal,
            .rows = s.rows,
            .heads = s.heads,
            .group = s.group,
            .size = s.size,
            .start = s.start,
            .context = context,
            .scale = 1.0F / std::sqrt(static_cast<float>(s.size))};
  return m;
}

// What a mask has entries for; of the others, all have the same.
struct MaskForm {
  Attention::Mask::Kind kind = Attention::Mask::Kind::kF32;
  bool heads = false, rows = false, positions = false;
};

// One of as many entries as the call reads. Of values, or of this one alone.
void set_mask(Made& m, const MaskForm& form, std::optional<float> only = {}) {
  using Kind = Attention::Mask::Kind;
  Attention& a = m.call;
  const size_t row = form.positions ? a.context : 1;
  const size_t head = form.rows ? row * a.rows : row;
  a.mask = {.kind = form.kind,
            .head = form.heads ? head : 0,
            .row = form.rows ? row : 0,
            .position = form.positions ? size_t{1} : 0};
  m.mask = normal_floats(form.heads ? head * a.heads : head, 4);
  m.half_mask.clear();
  m.seen.clear();
  for (size_t i = 0; i < m.mask.size(); ++i) {
    float& v = m.mask[i];
    if (i % 5 == 2) v = -INFINITY;
    if (form.kind == Kind::kBool && v != -INFINITY) v = 0;
    if (only) v = *only;
    m.half_mask.push_back(float_to_half(v));
    if (form.kind == Kind::kF16) v = half_to_float(m.half_mask.back());
    m.seen.push_back(v == 0 ? 1 : 0);
  }
  a.mask.data = m.mask.data();
  if (form.kind == Kind::kF16) a.mask.data = m.half_mask.data();
  if (form.kind == Kind::kBool) a.mask.data = m.seen.data();
}

// A score with what the mask says of it, as f32 has it.
double masked(const Made& m, double score, size_t row, size_t head, size_t position) {
  const Attention::Mask& mask = m.call.mask;
  if (mask.kind == Attention::Mask::Kind::kNone) return score;
  const float v = m.mask[head * mask.head + row * mask.row + position * mask.position];
  const double lowest = std::numeric_limits<float>::lowest();
  const auto sum = static_cast<float>(score + std::max(double{v}, lowest));
  return std::max(double{sum}, lowest);
}

std::vector<float> attend_all(Made& m, size_t threads) {
  Attention a = m.call;
  a.q = m.q.data();
  a.y = m.y.data();
  a.keys = m.keys.data();
  a.values = m.values.data();
  if (a.kind == CacheKind::kF16) {
    a.keys = m.half_keys.data();
    a.values = m.half_values.data();
  }
  std::ranges::fill(m.y, -1.0F);
  const size_t own = (attention_scratch_bytes() + 63) / 64 * 64;
  const Aligned scratch(own * threads);
  Pool pool(threads);
  pool.run(attention_blocks(a), [&](size_t block, size_t thread) {
    attend(a, block, static_cast<std::byte*>(scratch.data()) + thread * own);
  });
  return m.y;
}

// A row of one head.
std::vector<double> plain_row(const Made& m, size_t row, size_t head) {
  const Attention& a = m.call;
  const float* const q = m.q.data() + row * a.q_strides.row + head * a.q_strides.head;
  const size_t visible = a.causal ? std::min(a.start + row + 1, a.context) : a.context;
  std::vector<double> scores(visible);
  double most = -INFINITY;
  for (size_t p = 0; p < visible; ++p) {
    const float* const key =
        m.keys.data() + p * a.k_strides.row + head / a.group * a.k_strides.head;
    for (size_t i = 0; i < a.size; ++i) scores[p] += double{q[i]} * double{key[i]};
    scores[p] = masked(m, scores[p] * double{a.scale}, row, head, p);
    most = std::max(most, scores[p]);
  }
  double sum = 0;
  for (double& s : scores) sum += s = std::exp(s - most);
  std::vector<double> y(a.size);
  for (size_t p = 0; p < visible; ++p) {
    const float* const value =
        m.values.data() + p * a.k_strides.row + head / a.group * a.k_strides.head;
    for (size_t i = 0; i < a.size; ++i) y[i] += scores[p] / sum * double{value[i]};
  }
  return y;
}

void expect_plain(Made& m) {
  const Attention& a = m.call;
  std::vector<double> want(m.y.size());
  for (size_t r = 0; r < a.rows; ++r) {
    for (size_t h = 0; h < a.heads; ++h)
      std::ranges::copy(
          plain_row(m, r, h),
          want.begin() + static_cast<ptrdiff_t>(r * a.y_strides.row + h * a.y_strides.head));
  }
  for_each_target([&] {
    const std::vector<float> got = attend_all(m, 1);
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_TRUE(is_near(got[i], want[i], 1e-5 + 1e-5 * std::fabs(want[i])))
          << "rows " << a.rows << " size " << a.size << " start " << a.start << " context "
          << a.context << " causal " << a.causal << " mask " << static_cast<int>(a.mask.kind)
          << " strides " << a.mask.head << " " << a.mask.row << " " << a.mask.position << " at "
          << i << ": want " << want[i] << ", got " << got[i];
    }
  });
}

TEST(Attention, MatchesPlainLoops) {
  for (const CacheKind kind : {CacheKind::kF32, CacheKind::kF16}) {
    for (const bool causal : {true, false}) {
      for (const Layout layout : {Layout::kRowsFirst, Layout::kHeadsFirst}) {
        for (const size_t rows : {1UL, 3UL, 7UL, 37UL}) {
          for (const size_t size : {1UL, 8UL, 64UL, 80UL, 256UL}) {
            Made first = make_call({rows, 6, 3, size, 0}, kind, causal, layout);
            expect_plain(first);
            Made later = make_call({rows, 2, 1, size, 131}, kind, causal, layout);
            expect_plain(later);
          }
        }
      }
    }
  }
}

TEST(Attention, RowsSeeNothingBehindThem) {
  for (const CacheKind kind : {CacheKind::kF32, CacheKind::kF16}) {
    for (const Layout layout : {Layout::kRowsFirst, Layout::kHeadsFirst}) {
      for (const size_t rows : {1UL, 5UL, 40UL}) {
        const Shape shape{
            .rows = rows, .heads = 4, .group = 2, .size = 20, .start = 50, .beyond = 77};
        Made m = make_call(shape, kind, true, layout);
        expect_plain(m);
        // What is behind the last row is not even read: old contents may be anything.
        const std::vector<float> before = attend_all(m, 1);
        for (size_t p = shape.start + rows; p < m.call.context; ++p) {
          for (size_t h = 0; h < 2; ++h) {
            const size_t at = p * m.call.k_strides.row + h * m.call.k_strides.head;
            for (size_t i = 0; i < shape.size; ++i) {
              m.keys[at + i] = m.values[at + i] = NAN;
              m.half_keys[at + i] = m.half_values[at + i] = 0x7E00;
            }
          }
        }
        EXPECT_TRUE(same_bits(attend_all(m, 1), before)) << rows;
      }
    }
  }
}

TEST(Attention, RowsMaySeeLessThanAllPositionsOfACall) {
  // Causal rows that start at 0 with fewer positions than rows: the last ones see all there are.
  Made m = make_call({.rows = 37, .heads = 2, .group = 1, .size = 16}, CacheKind::kF32, true,
                     Layout::kRowsFirst);
  m.call.context = 20;
  expect_plain(m);
}

using MaskKind = Attention::Mask::Kind;
constexpr MaskKind kMasks[] = {MaskKind::kF32, MaskKind::kF16, MaskKind::kBool};

// Positions around vectors and blocks of them.
TEST(Attention, MasksMatchPlainLoops) {
  for (const MaskKind kind : kMasks) {
    for (const bool causal : {true, false}) {
      for (const size_t rows : {1UL, 5UL, 37UL}) {
        for (const size_t start : {0UL, 2UL, 15UL, 63UL, 131UL}) {
          Made m = make_call({.rows = rows, .heads = 2, .size = 20, .start = start},
                             CacheKind::kF32, causal, Layout::kRowsFirst);
          for (size_t i = 0; i < 8; ++i) {
            set_mask(m, {kind, (i & 1U) != 0, (i & 2U) != 0, (i & 4U) != 0});
            expect_plain(m);
          }
        }
      }
    }
  }
}

// All values count alike then.
TEST(Attention, RowsThatSeeNothingHaveTheMean) {
  for (const MaskKind kind : kMasks) {
    for (const size_t rows : {3UL, 9UL}) {
      Made m = make_call({.rows = rows, .heads = 2, .size = 20, .start = 70}, CacheKind::kF16, true,
                         Layout::kHeadsFirst);
      set_mask(m, {kind, true, true, true}, -INFINITY);
      expect_plain(m);
    }
  }
}

TEST(Attention, DoesNotDependOnThreads) {
  for (const CacheKind kind : {CacheKind::kF32, CacheKind::kF16}) {
    Made m = make_call({.rows = 70, .heads = 6, .group = 2, .size = 80, .start = 90}, kind, true,
                       Layout::kRowsFirst);
    for_each_target([&] {
      const std::vector<float> one = attend_all(m, 1);
      for (const size_t threads : {2UL, 3UL})
        EXPECT_TRUE(same_bits(attend_all(m, threads), one)) << threads;
    });
  }
}

// Those of one row stay there.
TEST(Attention, CarriesNanOfQueries) {
  for (const size_t rows : {3UL, 9UL}) {
    Made m = make_call({.rows = rows, .heads = 2, .group = 1, .size = 24, .start = 70},
                       CacheKind::kF32, true, Layout::kRowsFirst);
    m.q[2 * m.call.q_strides.row + 5] = NAN;
    expect_plain(m);
    m.q[2 * m.call.q_strides.row + 5] = INFINITY;
    expect_plain(m);
  }
}

// Those of a token stay with the rows that see it, in its block of rows and in those before it.
TEST(Attention, CarriesNanAndInfinitiesOfCachesToRowsThatSeeThem) {
  struct Odd {
    float value;
    uint16_t half;
  };
  for (const Odd odd : {Odd{NAN, 0x7E00}, Odd{INFINITY, 0x7C00}, Odd{-INFINITY, 0xFC00}}) {
    for (const CacheKind kind : {CacheKind::kF32, CacheKind::kF16}) {
      for (const size_t rows : {3UL, 40UL}) {
        for (const size_t size : {24UL, 64UL}) {
          for (const bool in_keys : {false, true}) {
            Made m = make_call({.rows = rows, .heads = 2, .group = 1, .size = size, .start = 50},
                               kind, true, Layout::kRowsFirst);
            const size_t at = (50 + rows - 2) * m.call.k_strides.row + 5;
            (in_keys ? m.keys : m.values)[at] = odd.value;
            (in_keys ? m.half_keys : m.half_values)[at] = odd.half;
            expect_plain(m);
          }
        }
      }
    }
  }
}

// Scores that are too large for exp, of which only differences count.
TEST(Attention, LargeScoresDoNotOverflow) {
  Made m = make_call({.rows = 9, .heads = 2, .group = 1, .size = 24, .start = 200}, CacheKind::kF32,
                     true, Layout::kRowsFirst);
  for (float& v : m.q) v = std::round(v * 4) * 64;
  for (float& v : m.keys) v = std::round(v * 4);
  m.call.scale = 0.25F;
  expect_plain(m);
}

}  // namespace
}  // namespace pteryx::cpu
