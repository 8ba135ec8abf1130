// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/attention/decode_cut.h"

#include <algorithm>
#include <bit>

namespace pteryx::ops::attention {
namespace {

constexpr int64_t kDecodeKeys = 256;     // of a workgroup, if it can have them under way
constexpr int64_t kSharedKeys = 128;     // of one for two heads, while there are few
constexpr int64_t kManyKeys = 4096;      // beyond, longer splits are merged sooner
constexpr int64_t kDecodeMaxSize = 256;  // of a head whose columns stay in registers
constexpr int64_t kLoads = 8;            // of 16 bytes of k that a lane has under way, and of v
constexpr int64_t kSharedHeads = 2;      // of a workgroup, at most

// The steps in which a team takes so many keys at a time, up to what lanes can have under way.
int64_t steps_for(const Attention& a, const DecodeCut& cut, int64_t keys) {
  const int64_t unit = a.size % 8 == 0 ? 8 : 4;
  const bool wide = a.k.dtype == DType::kF32 || a.v.dtype == DType::kF32;
  const int64_t key_loads = div_up(a.size / unit, cut.team) * (wide && unit == 8 ? 2 : 1);
  return std::clamp<int64_t>(keys / (cut.threads / cut.team), 1,
                             std::max<int64_t>(kLoads / key_loads, 1));
}

bool decode_fits(const Attention& a, const DecodeCut& cut, const gpu::Caps& caps) {
  const int64_t set = cut.shared * quads(a.size);
  const int64_t cells = cut.threads / cut.block;
  const int64_t slots = std::min<int64_t>(cut.threads / set, 8);
  const int64_t bytes =
      16 * std::max(cells * set, cut.threads) + 8 * cut.shared * std::max(cells, slots) + 4;
  return cut.threads <= std::min(caps.max_invocations, caps.max_workgroup_size_x) &&
         cut.threads >= std::max(set, kDecodeRows * cut.team) && cells * set <= 1024 &&
         bytes <= static_cast<int64_t>(caps.max_workgroup_bytes);
}

// Two heads of one row share workgroups where keys are split: each key and value is then read once
// for both of them.
int64_t shared_heads(const Attention& a, int64_t keys) {
  return a.batch * a.rows == 1 && a.group % kSharedHeads == 0 && keys > kDecodeKeys ? kSharedHeads
                                                                                    : 1;
}

}  // namespace

DecodeCut decode_cut(const Attention& a, int64_t keys, const gpu::Caps& caps) {
  if (!caps.subgroups || caps.subgroup_min < 8 || a.size % 4 != 0 || a.size < 4 ||
      a.size > kDecodeMaxSize) {
    return {};
  }
  DecodeCut cut{.block = std::min<int64_t>(std::bit_floor(caps.subgroup_min), 32)};
  const int64_t units = a.size / (a.size % 8 == 0 ? 8 : 4);
  // The team that leaves fewer lanes idle.
  cut.team = div_up(units, 4) * 4 < div_up(units, 8) * 8 ? 4 : 8;
  for (cut.shared = shared_heads(a, keys); cut.shared > 0; cut.shared /= 2) {
    // Smaller ones leave less of a processor idle; while there are few, larger ones are done
    // sooner.
    const int64_t most = keys > kLongContext || cut.shared > 1 ? 256 : 512;
    for (const int64_t threads : {512, 256, 128, 64}) {
      cut.threads = threads;
      if (threads > most || !decode_fits(a, cut, caps)) continue;
      const bool few = cut.shared > 1 && keys <= kManyKeys;
      cut.steps = steps_for(a, cut, few ? kSharedKeys : kDecodeKeys);
      return cut;
    }
  }
  return {};
}

Splits decode_splits(const Attention& a, int64_t keys, const DecodeCut& cut,
                     const gpu::Caps& caps) {
  const int64_t most = most_splits(items(a) / cut.shared, caps);
  const int64_t count = std::clamp<int64_t>(div_up(keys, cut.keys()), 1, most);
  const int64_t length = div_up(div_up(keys, count), cut.keys()) * cut.keys();
  return {std::max<int64_t>(div_up(keys, length), 1), length};
}

}  // namespace pteryx::ops::attention
