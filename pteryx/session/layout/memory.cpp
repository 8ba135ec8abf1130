// Buffers and their sizes. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pteryx/base/order.h"
#include "pteryx/session/constant.h"
#include "pteryx/session/layout/stages.h"

namespace pteryx::layout {
namespace {

using graph::index;
using graph::ValueId;

class Memory : Stage {
 public:
  using Stage::Stage;

  void assign_memory() {
    fill_inbox();
    std::vector<graph::Lifetime> lifetimes = lifetimes_at(Place::kGpu);
    extend_downloads(lifetimes);
    std::vector<uint32_t> shared;
    for (uint32_t i = 0; i < l_.roots.size(); ++i) {
      const Root& r = l_.roots[i];
      if (!r.gpu || r.inbox != kNoOffset) continue;
      if (needs_own_buffer(i)) {
        (r.constant ? l_.memory.constants
         : r.state  ? l_.memory.state
                    : l_.memory.activations) += std::max<uint64_t>(r.gpu_bytes, 16);
        continue;
      }
      lifetimes[i].bytes = std::max<uint64_t>(r.gpu_bytes, 16);
      shared.push_back(i);
    }
    const graph::SlotPlan plan = share_slots(shared, lifetimes, &Root::slot);
    l_.slot_bytes = plan.slot_bytes;
    l_.memory.activations += plan.total_bytes();
    for (const uint32_t r : downloaded_) {
      l_.roots[r].readback_offset = l_.readback_bytes;
      l_.readback_bytes += align_up(std::max<uint64_t>(l_.roots[r].gpu_bytes, 16), 8);
    }
    // Reports of indices come back behind whatever a run reads.
    if (l_.readback_bytes > 0) l_.readback_bytes += l_.fault_bytes();
    l_.memory.transfer = l_.readback_bytes;
    l_.memory.activations += l_.fault_bytes();
    assign_host_memory();
  }

  // What plans need besides: temporaries, of which number i of one node shares its buffer with
  // number i of every other, and constants in other layouts.
  void add_planned() {
    std::vector<uint64_t>& largest = l_.scratch_bytes;
    std::set<std::pair<ConstantId, std::string>> relaid;
    for (const std::optional<NodePlan>& plan : l_.plans) {
      if (!plan) continue;
      if (plan->scratch_bytes.size() > largest.size()) largest.resize(plan->scratch_bytes.size());
      for (size_t k = 0; k < plan->scratch_bytes.size(); ++k)
        largest[k] = std::max(largest[k], plan->scratch_bytes[k]);
      l_.counted_bytes = std::max(l_.counted_bytes, plan->counted_bytes);
      for (const ops::PlannedConstant& c : plan->constants) {
        const bool first = relaid.emplace(ConstantId(*g_.tensor(c.source)), c.layout).second;
        if (!first) continue;
        l_.memory.constants += c.size_bytes;
        l_.relaid.push_back({c.source, c.layout, c.size_bytes});
      }
    }
    l_.memory.scratch += l_.counted_bytes;
    for (const uint64_t bytes : largest) l_.memory.scratch += bytes;
  }

 private:
  // Of each root: from the first to the last node there that uses it; `first` is kNone where none
  // does.
  std::vector<graph::Lifetime> lifetimes_at(Place place) const {
    std::vector<graph::Lifetime> lifetimes(l_.roots.size());
    for (auto& life : lifetimes) life.first = kNone;
    for (uint32_t i = 0; i < g_.nodes.size(); ++i) {
      if (l_.place[i] != place) continue;
      const auto touch = [&](ValueId id) {
        graph::Lifetime& life = lifetimes[root(id)];
        life.first = std::min(life.first, i);
        life.last = std::max(life.last, i);
      };
      each_read(i, touch);
      each_write(i, touch);
    }
    return lifetimes;
  }

  // Gives roots their slots.
  graph::SlotPlan share_slots(const std::vector<uint32_t>& roots,
                              const std::vector<graph::Lifetime>& lifetimes,
                              uint32_t Root::* slot) {
    std::vector<graph::Lifetime> shared;
    shared.reserve(roots.size());
    for (const uint32_t r : roots) shared.push_back(lifetimes[r]);
    graph::SlotPlan plan = graph::assign_slots(shared);
    for (size_t k = 0; k < roots.size(); ++k) l_.roots[roots[k]].*slot = plan.slot[k];
    return plan;
  }

  // Private: anything that outlives its nodes or is written by the queue.
  bool needs_own_buffer(uint32_t i) const {
    const Root& r = l_.roots[i];
    return r.constant || r.state || r.input || r.cross_block || uploaded_.contains(i) ||
           g_.has_jumps;
  }

  // What only nodes on the CPU of one block use shares memory by lifetime, too.
  void assign_host_memory() {
    std::vector<bool> own(l_.roots.size(), g_.has_jumps);
    for (const ValueId id : g_.outputs) {
      if (g_.tensor(id) != nullptr) own[root(id)] = true;
    }
    for (size_t i = 0; i < l_.item_source.size(); ++i) {
      if (l_.place[i] == Place::kItem) own[l_.item_source[i]] = true;
    }
    std::vector<graph::Lifetime> lifetimes = lifetimes_at(Place::kCpu);
    std::vector<uint32_t> shared;
    for (uint32_t i = 0; i < l_.roots.size(); ++i) {
      const Root& r = l_.roots[i];
      if (!r.host || r.constant) continue;
      if (r.state) l_.memory.host_state += r.host_bytes;
      const bool stays = own[i] || r.gpu || r.state || r.input || r.cross_block;
      if (stays || lifetimes[i].first == kNone) {
        l_.memory.host += r.host_bytes;
        continue;
      }
      lifetimes[i].bytes = std::max<uint64_t>(r.host_bytes, 1);
      shared.push_back(i);
    }
    const graph::SlotPlan plan = share_slots(shared, lifetimes, &Root::host_slot);
    l_.host_slot_bytes = plan.slot_bytes;
    l_.memory.host += plan.total_bytes();
  }

  // Small tensors from the host go where the live scalars are, so that one write brings everything
  // a run needs.
  // Smallest first: a write ends with the last byte that is live.
  void fill_inbox() {
    constexpr uint64_t kSmall = 64U << 10;
    for (const graph::Value& v : g_.values) {
      const auto* scalar = std::get_if<graph::LiveScalar>(&v);
      if (scalar != nullptr && scalar->kind == graph::ScalarKind::kInt)
        l_.scalar_slots = std::max(l_.scalar_slots, scalar->slot + 1);
    }
    const uint64_t align = context_.caps.storage_alignment;
    l_.inbox_bytes = align_up(uint64_t{l_.scalar_slots} * 4, align);
    std::vector<uint32_t> small;
    for (uint32_t i = 0; i < l_.roots.size(); ++i) {
      const Root& r = l_.roots[i];
      if (uploaded_.contains(i) && !r.gpu_written && !r.state && r.gpu_bytes <= kSmall)
        small.push_back(i);
    }
    sort_places(small, [&](uint32_t a, uint32_t b) {
      return l_.roots[a].gpu_bytes < l_.roots[b].gpu_bytes;
    });
    for (const uint32_t i : small) {
      l_.roots[i].inbox = l_.inbox_bytes;
      l_.inbox_bytes += align_up(std::max<uint64_t>(l_.roots[i].gpu_bytes, 16), align);
    }
    l_.memory.activations += l_.inbox_bytes;
  }

  // A downloaded value must survive until the submit that copies it has run.
  void extend_downloads(std::vector<graph::Lifetime>& lifetimes) const {
    for (const Block& b : l_.blocks) {
      uint32_t last = b.begin;
      for (const Step& s : b.steps) {
        if (s.kind != Step::Kind::kSubmit) continue;
        if (!b.spans[s.index].nodes.empty()) last = b.spans[s.index].nodes.back();
        for (const uint32_t r : s.downloads) lifetimes[r].last = std::max(lifetimes[r].last, last);
      }
    }
  }
};

}  // namespace

void assign_memory(Draft& d) {
  Memory memory(d);
  memory.assign_memory();
  memory.add_planned();
}

}  // namespace pteryx::layout
