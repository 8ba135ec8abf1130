// Who makes and who reads each value of a graph, for passes.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "pteryx/graph/graph.h"

namespace pteryx::fuse {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;
using graph::ValueList;

inline constexpr uint32_t kNoNode = std::numeric_limits<uint32_t>::max();

class Uses {
 public:
  explicit Uses(const Graph& g);

  // The one node that writes a value; kNoNode if none does, or several.
  uint32_t producer(ValueId id) const { return producer_[graph::index(id)]; }
  // The same if it is a call of `op`.
  uint32_t made_by(ValueId id, std::string_view op) const;
  // The one node that reads a value; kNoNode where none, several or the caller do.
  uint32_t reader(ValueId id) const { return reads(id) == 1 ? reader_[graph::index(id)] : kNoNode; }
  // Reads by nodes, counting members of lists, and by the caller.
  uint32_t reads(ValueId id) const { return reads_[graph::index(id)]; }
  // Holds the same elements from its producer on: not state, not written twice, not read before.
  bool stable(ValueId id) const { return stable_[graph::index(id)]; }

 private:
  const Graph& g_;
  std::vector<uint32_t> producer_;
  std::vector<uint32_t> reads_;
  std::vector<uint32_t> reader_;  // the last that was found
  std::vector<bool> stable_;
};

// Inputs whose size differs from run to run. Where there are several, values of equal bounds may
// have different sizes.
size_t varying_inputs(const Graph& g);

// With as many arguments as the operator has: files may have any number.
bool is_call(const Node& n, std::string_view op);
// Visits a value and, of a list, its members.
template <typename F>
void for_each_value(const Graph& g, ValueId id, F&& visit) {
  visit(id);
  if (const auto* list = std::get_if<ValueList>(&g[id])) {
    for (const ValueId item : list->items) {
      if (item != kNoValue) visit(item);
    }
  }
}
// Takes nodes out, the others keep their order.
void erase_nodes(Graph& g, const std::vector<bool>& gone);

}  // namespace pteryx::fuse
