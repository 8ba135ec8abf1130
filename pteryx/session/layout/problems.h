// Calls that cannot run, told together.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pteryx/base/status.h"
#include "pteryx/graph/graph.h"

namespace pteryx::layout {

struct Problem {
  std::string_view op;
  std::string text;
};

// "aten.add.Tensor (node 3)(f32[2, 3], f32[3])"
std::string describe_call(const graph::Graph& g, const graph::Node& n);

// kUnsupported with a line for each operator, those with the most calls first, and the first of its
// problems.
Status list_unsupported(const graph::Graph& g, const std::vector<Problem>& calls);

}  // namespace pteryx::layout
