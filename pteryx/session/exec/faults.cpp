// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/exec/faults.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "pteryx/ops/index_bound.h"

namespace pteryx::exec {

// Of several nodes the first tells what happened: the others may have used what it made.
Status Faults::take(Bytes copy, uint64_t first, uint64_t last) {
  const bool earlier = read_ + 1 < first;
  read_ = std::max(read_, last);
  std::array<uint32_t, ops::kFaultWords> words{};
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const uint32_t slot = layout_.fault_slot[i];
    if (slot == kNone) continue;
    std::memcpy(words.data(), copy.data() + slot * sizeof(words), sizeof(words));
    if (words[0] == 0) continue;
    PTERYX_TRY(clear());
    Status s = ops::fault_status({graph_, graph_.nodes[i], *layout_.defs[i], layout_.bound}, words);
    if (!earlier) return s;
    return {s.code(),
            fmt::format("{}; perhaps in an earlier run, of which nothing was read", s.message())};
  }
  return {};
}

Status Faults::forget() { return none() || read_ == submitted_ ? Status() : clear(); }

Status Faults::clear() {
  read_ = submitted_;
  const std::vector<std::byte> zeros(size_bytes());
  return device_->write(buffer_, 0, zeros);
}

Status after_change_of_state(const Status& s) {
  return {s.code(),
          fmt::format("{}; state such as caches was changed before that: reset it", s.message())};
}

}  // namespace pteryx::exec
