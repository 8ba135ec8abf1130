// From work items to workgroup counts: the only place that knows the per-dimension limit and the
// 2-D fold.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "pteryx/base/checked.h"
#include "pteryx/gpu/caps.h"
#include "pteryx/gpu/device.h"

namespace pteryx::gpu {

// n workgroups along one flat index; folded to x*y >= n when n exceeds the limit of one dimension.
// Shaders recover the index with flat_group() of common/index.wgsl and guard it.
inline Grid flat_grid(uint64_t n, const Caps& caps) {
  const uint64_t limit = caps.max_workgroups_per_dim;
  if (n <= limit) return {static_cast<uint32_t>(n), 1, 1};
  const uint64_t y = div_up(n, limit);
  return {static_cast<uint32_t>(div_up(n, y)), static_cast<uint32_t>(y), 1};
}

}  // namespace pteryx::gpu
