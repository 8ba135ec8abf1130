// What graphs are made of, and how messages name it. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/graph/graph.h"

#include <fmt/format.h>

namespace pteryx::graph {

std::string_view kind_name(const Value& v) {
  static constexpr std::string_view kNames[] = {"None",
                                                "an int",
                                                "a float",
                                                "a bool",
                                                "a string",
                                                "a tensor",
                                                "a live scalar",
                                                "a list of ints",
                                                "a list of floats",
                                                "a list of bools",
                                                "a list of values"};
  return kNames[v.index()];
}

ValueId Graph::add(Value v, std::string label) {
  values.push_back(std::move(v));
  labels.push_back(std::move(label));
  return ValueId{static_cast<uint32_t>(values.size() - 1)};
}

uint32_t number_scalars(Graph& g) {
  uint32_t count = 0;
  for (Value& v : g.values) {
    auto* scalar = std::get_if<LiveScalar>(&v);
    if (scalar != nullptr && scalar->kind == ScalarKind::kInt) scalar->slot = count++;
  }
  return count;
}

std::string describe(const Graph&, const Node& n) {
  const std::string_view name = n.op != nullptr ? n.op->name : n.spelling;
  if (n.delegate < 0) return fmt::format("{} (instruction {})", name, n.call);
  return fmt::format("{} (delegate {}, node {})", name, n.delegate, n.call);
}

}  // namespace pteryx::graph
