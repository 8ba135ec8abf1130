// Chains of nodes that become one: who reads a value alone, and putting nodes in the place of one.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <vector>

#include "pteryx/fuse/uses.h"

namespace pteryx::fuse {

class Chains {
 public:
  explicit Chains(const Graph& g) : g_(g), uses_(g) {}

  const Uses& uses() const { return uses_; }
  // The node that reads a value where nothing else does; kNoNode otherwise.
  uint32_t next(ValueId id) const;
  // A value that is there wherever a chain may end: constants, inputs, what one node makes.
  bool stays(ValueId id) const { return g_.tensor(id) == nullptr || uses_.stable(id); }

 private:
  const Graph& g_;
  Uses uses_;
};

// Whether a literal is that number.
bool is_number(const Graph& g, ValueId id, double v);
// a + b, or nothing: the sum of what a chain has made and the value that is returned.
ValueId added_to(const Graph& g, const Node& n, ValueId y);
// Both are floats of one type, with equal bounds.
bool are_alike(const Graph& g, ValueId a, ValueId b);

// What stands in the place of nodes; without anything, they go.
using Replacements = std::map<uint32_t, std::vector<Node>>;
void replace_nodes(Graph& g, Replacements made);

}  // namespace pteryx::fuse
