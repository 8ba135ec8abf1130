// Live scalars whose slot is part of a kernel, so that nothing waits for params to find them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>

#include "pteryx/ops/op.h"

namespace pteryx::ops {

// The slot that an int is read from, as an option of a kernel; none where it is a literal.
inline std::optional<int64_t> fixed_slot(LiveInt v) {
  constexpr uint32_t kMost = 65535;
  const uint32_t slot = v.word & ~LiveInt::kSlot;
  if (!v.is_slot() || slot > kMost) return std::nullopt;
  return slot;
}

}  // namespace pteryx::ops
