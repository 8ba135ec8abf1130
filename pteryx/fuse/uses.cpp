// Reads and writes of a graph's values. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/fuse/uses.h"

#include <algorithm>

#include "pteryx/ops/table.h"

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about

Uses::Uses(const Graph& g)
    : g_(g),
      producer_(g.values.size(), kNoNode),
      reads_(g.values.size()),
      reader_(g.values.size(), kNoNode),
      stable_(g.values.size(), true) {
  std::vector<bool> written(g.values.size());
  for (uint32_t v = 0; v < g.values.size(); ++v) {
    const auto* t = std::get_if<Tensor>(&g.values[v]);
    stable_[v] = t == nullptr || !t->state;
    written[v] = t != nullptr && t->has_data();
  }
  for (const ValueId id : g.inputs) written[index(id)] = true;
  // What is read before it is written, as files may have it, would make walks along it endless.
  const auto write = [&](uint32_t node, ValueId id) {
    const bool first = !written[index(id)] && reads_[index(id)] == 0;
    producer_[index(id)] = first ? node : kNoNode;
    stable_[index(id)] = stable_[index(id)] && first;
    written[index(id)] = true;
  };
  for (uint32_t i = 0; i < g.nodes.size(); ++i) {
    const Node& n = g.nodes[i];
    if (n.args.empty()) continue;
    for (size_t a = 0; a + 1 < n.args.size(); ++a) {
      const bool mutated = n.op != nullptr && n.op->mutates(a);
      for_each_value(g, n.args[a], [&](ValueId id) {
        ++reads_[index(id)];
        reader_[index(id)] = i;
        if (mutated) write(i, id);
      });
    }
    for_each_value(g, n.args.back(), [&](ValueId id) { write(i, id); });
  }
  for (const ValueId id : g.outputs) {
    ++reads_[index(id)];
    reader_[index(id)] = kNoNode;
  }
}

size_t varying_inputs(const Graph& g) {
  return static_cast<size_t>(std::count_if(g.inputs.begin(), g.inputs.end(), [&](ValueId id) {
    const Tensor* t = g.tensor(id);
    return t != nullptr && t->dynamic && numel(t->max) > 1;
  }));
}

bool is_call(const Node& n, std::string_view op) {
  return n.op != nullptr && n.op->name == op && n.args.size() == ops::op(*n.op).args.size();
}

uint32_t Uses::made_by(ValueId id, std::string_view op) const {
  const uint32_t i = producer(id);
  return i != kNoNode && stable(id) && is_call(g_.nodes[i], op) ? i : kNoNode;
}

void erase_nodes(Graph& g, const std::vector<bool>& gone) {
  size_t kept = 0;
  for (size_t i = 0; i < g.nodes.size(); ++i) {
    if (gone[i]) continue;
    if (kept != i) g.nodes[kept] = std::move(g.nodes[i]);
    ++kept;
  }
  g.nodes.resize(kept);
}

}  // namespace pteryx::fuse
