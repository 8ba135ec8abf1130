// Whether every value is there when it is read.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pteryx/base/status.h"
#include "pteryx/graph/graph.h"

namespace pteryx::graph {

// Every value is an input, a constant, state or the result of an earlier node when it is read; not
// looked at where there are jumps. Errors: kInvalidProgram.
Status check_order(const Graph& g);

}  // namespace pteryx::graph
