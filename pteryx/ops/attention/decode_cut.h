// How the kernels for few rows are cut: into workgroups of keys, and of query heads that share
// them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>

#include "pteryx/ops/attention/attention.h"

namespace pteryx::ops::attention {

inline int64_t div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t quads(int64_t size) { return div_up(size, 4); }
inline int64_t items(const Attention& a) { return a.batch * a.heads * a.rows; }

// Workgroups that fill the GPU, of which several share a processor.
inline int64_t many_groups(const gpu::Caps& caps) { return 8 * int64_t{caps.sizes.processors}; }
// Into which the keys of so many workgroups are cut at most.
inline int64_t most_splits(int64_t groups, const gpu::Caps& caps) {
  return std::max<int64_t>(many_groups(caps) / std::max<int64_t>(groups, 1), 1);
}

// Keys cut in `count` parts of `keys` each.
struct Splits {
  int64_t count = 1;
  int64_t keys = 0;
};

inline constexpr int64_t kDecodeRows = 8;  // up to here the keys are split over workgroups
// Beyond, there are workgroups for more than a GPU holds.
inline constexpr int64_t kLongContext = 2048;

// How attention_decode is cut.
struct DecodeCut {
  int64_t threads = 0;  // of a workgroup; 0: it does not fit
  int64_t team = 8;     // lanes to a key
  int64_t block = 32;   // lanes that are joined by shuffles
  int64_t steps = 1;    // keys of a team whose loads are under way together
  int64_t shared = 1;   // query heads of a workgroup, which have a head of k and v in common
  int64_t keys() const { return threads / team * steps; }
};

// For contexts of so many keys.
DecodeCut decode_cut(const Attention& a, int64_t keys, const gpu::Caps& caps);
// As many workgroups as the keys need, up to what fills the GPU; beyond, each passes over more.
Splits decode_splits(const Attention& a, int64_t keys, const DecodeCut& cut, const gpu::Caps& caps);

}  // namespace pteryx::ops::attention
