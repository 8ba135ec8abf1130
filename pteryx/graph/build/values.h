// The values of a method, as the graph has them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>

#include "pteryx/graph/build/emitter.h"
#include "pteryx/program/delegate.h"
#include "pteryx/program/program.h"

namespace pteryx::graph {

// Adds them all, in their order and from number 0 on. Scalars that some instruction writes are
// live. `blobs`: of the method's delegates.
void add_method_values(const program::MethodRecord& method, std::span<const program::Blob> blobs,
                       Emitter& to);

}  // namespace pteryx::graph
