// Lifetimes to buffer slots: values whose lifetimes do not meet share one buffer.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace pteryx::graph {

// A buffer is needed from node `first` (which writes it) to node `last` (which reads it last), both
// included.
struct Lifetime {
  uint64_t bytes = 0;
  uint32_t first = 0;
  uint32_t last = 0;
};

struct SlotPlan {
  std::vector<uint32_t> slot;        // of each lifetime
  std::vector<uint64_t> slot_bytes;  // the largest member
  uint64_t total_bytes() const;
};

// Greedy by first use, best fit; n log n. Two lifetimes that share a node never share a slot, so no
// dispatch reads and writes one buffer.
SlotPlan assign_slots(std::span<const Lifetime> lifetimes);

}  // namespace pteryx::graph
