// Slot assignment. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/graph/memory_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>

#include "pteryx/base/order.h"

namespace pteryx::graph {

uint64_t SlotPlan::total_bytes() const {
  return std::accumulate(slot_bytes.begin(), slot_bytes.end(), uint64_t{0});
}

SlotPlan assign_slots(std::span<const Lifetime> lifetimes) {
  SlotPlan plan;
  plan.slot.resize(lifetimes.size());
  const std::vector<uint32_t> order = sorted_places(lifetimes.size(), [&](uint32_t a, uint32_t b) {
    return lifetimes[a].first < lifetimes[b].first;
  });

  std::multimap<uint64_t, uint32_t> free_slots;  // by size
  using Busy = std::pair<uint32_t, uint32_t>;    // last node, slot
  std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy;
  for (const uint32_t i : order) {
    const Lifetime& life = lifetimes[i];
    while (!busy.empty() && busy.top().first < life.first) {
      free_slots.emplace(plan.slot_bytes[busy.top().second], busy.top().second);
      busy.pop();
    }
    uint32_t slot = 0;
    if (free_slots.empty()) {
      slot = static_cast<uint32_t>(plan.slot_bytes.size());
      plan.slot_bytes.push_back(life.bytes);
    } else {
      // The smallest that is large enough, else the largest, which then grows.
      auto it = free_slots.lower_bound(life.bytes);
      if (it == free_slots.end()) --it;
      slot = it->second;
      free_slots.erase(it);
      plan.slot_bytes[slot] = std::max(plan.slot_bytes[slot], life.bytes);
    }
    plan.slot[i] = slot;
    busy.emplace(life.last, slot);
  }
  return plan;
}

}  // namespace pteryx::graph
