// The stages that make a layout, in their order. Each takes what those before it added to the
// draft.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "pteryx/graph/graph.h"
#include "pteryx/ops/op.h"
#include "pteryx/session/layout.h"

namespace pteryx::layout {

// A layout in the making, with what the stages tell each other.
struct Draft {
  const graph::Graph& g;
  const ops::PlanContext& context;
  Layout l = {};
  std::vector<bool> data_dependent = {};  // of each value: data of a run decide its size or number
  std::vector<bool> unfit = {};  // of each node: its arguments do not go together at the bound
  std::vector<uint32_t> producer = {};  // of each value: the last node that writes it, or kNone
  std::set<uint32_t> uploaded = {};     // roots that some step brings to the GPU
  std::set<uint32_t> downloaded = {};   // roots that some step brings to the host
};

// Every node's definition, its arguments checked against the schema, and where it runs: adds defs
// and place. Finds all that cannot run.
Status place(Draft& d);
// Sizes at the bound, every shape rule run there: adds bound, is_static; leaves data_dependent and
// unfit.
Status check_shapes(Draft& d);
// Which values are one piece of memory: adds roots (their sizes, constants, state) and root_of, and
// takes the work away from views that share it.
void find_roots(Draft& d);
// Stretches whose shapes are known when they begin, and what of a root is used where: adds blocks
// (ranges, items, keys), item_source, changes_state, index_limits, fault_slot; leaves producer.
void split_blocks(Draft& d);
// What runs, moves and is waited for in each block: adds steps, spans, one_stretch; leaves uploaded
// and downloaded, which decide who has a buffer of its own.
void compile_steps(Draft& d);
// Plans every GPU node at the bound, which finds what no route can do: adds plans.
Status plan_nodes(Draft& d);
// Buffers and their sizes: adds slots, places in the staging and readback buffers, scratch,
// constants in other layouts and memory.
void assign_memory(Draft& d);

// What stages share: short names for the draft, and the tensors that a node reads and writes.
class Stage {
 public:
  explicit Stage(Draft& d)
      : g_(d.g),
        context_(d.context),
        l_(d.l),
        data_dependent_(d.data_dependent),
        unfit_(d.unfit),
        producer_(d.producer),
        uploaded_(d.uploaded),
        downloaded_(d.downloaded) {}

 protected:
  void each_read(size_t i, const auto& visit) const {
    const graph::Node& n = g_.nodes[i];
    const size_t count = l_.defs[i] == nullptr ? n.args.size() : n.args.size() - 1;
    for (size_t a = 0; a < count; ++a) for_each_tensor(g_, n.args[a], visit);
  }
  void each_write(size_t i, const auto& visit) const {
    if (l_.defs[i] == nullptr) return;
    const graph::Node& n = g_.nodes[i];
    for_each_tensor(g_, n.args.back(), visit);
    for (size_t a = 0; a + 1 < n.args.size(); ++a) {
      if (l_.defs[i]->args[a].mutated) for_each_tensor(g_, n.args[a], visit);
    }
  }
  uint32_t root(graph::ValueId id) const { return l_.root_of[graph::index(id)]; }
  // Whether data of a run decide the size of a tensor that node i reads or writes.
  bool has_data_dependent_size(size_t i) const {
    bool found = false;
    for (const graph::ValueId arg : g_.nodes[i].args) {
      for_each_tensor(
          g_, arg, [&](graph::ValueId id) { found = found || data_dependent_[graph::index(id)]; });
    }
    return found;
  }
  // Whether a rule looked at a number that data of a run decide.
  bool reads_data(const ops::ScalarReads& reads) const {
    return std::ranges::any_of(reads.values, [&](const ops::ScalarReads::Value& v) {
      return v.step == 0 && data_dependent_[graph::index(v.id)];
    });
  }

  const graph::Graph& g_;
  const ops::PlanContext& context_;
  Layout& l_;
  std::vector<bool>& data_dependent_;
  std::vector<bool>& unfit_;
  std::vector<uint32_t>& producer_;
  std::set<uint32_t>& uploaded_;
  std::set<uint32_t>& downloaded_;
};

}  // namespace pteryx::layout
