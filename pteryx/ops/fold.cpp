// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/fold.h"

#include <algorithm>
#include <bit>

namespace pteryx::ops {

Options Fold::options() const { return {{"team", team}, {"wg_size", workgroup}, {"block", block}}; }

Fold make_fold(FoldRoute route, int64_t length, uint32_t max_team, const gpu::Caps& caps) {
  Fold f;
  if (route == FoldRoute::kSerial) return f;
  const uint32_t limit = std::min({max_team, caps.max_invocations, caps.max_workgroup_size_x});
  const uint32_t wanted = length <= 256 ? 32 : (length <= 4096 ? 256 : 1024);
  f.team = std::bit_floor(std::min(wanted, limit));
  f.workgroup = std::max(f.team, 64U);
  if (route == FoldRoute::kSubgroup)
    f.block = std::min(std::bit_floor(caps.subgroup_min), f.workgroup);
  return f;
}

uint32_t held_steps(const Fold& f, int64_t length, uint32_t lanes) {
  const uint64_t steps = div_up(static_cast<uint64_t>(length), uint64_t{f.team} * lanes);
  for (const uint32_t held : {2U, 4U, 8U, 16U}) {
    if (steps <= held && held * lanes >= 4 && held * lanes <= 32) return held;
  }
  return 0;
}

bool has_subgroup_fold(const gpu::Caps& caps) { return caps.subgroups && caps.subgroup_min >= 4; }
bool fits_subgroup_fold(const Node& /*n*/, const gpu::Caps& caps) {
  return has_subgroup_fold(caps);
}

bool in_row_words(DType y, int64_t row_length) {
  return row_length * static_cast<int64_t>(size_bytes(y)) % 4 == 0;
}

uint32_t row_lanes(bool row_words, DType y) {
  return row_words ? static_cast<uint32_t>(4 / size_bytes(y)) : 1;
}

}  // namespace pteryx::ops
