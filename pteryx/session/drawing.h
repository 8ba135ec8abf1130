// Graphs of methods as pictures. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "pteryx/gpu/caps.h"
#include "pteryx/graph/graph.h"
#include "pteryx/ops/op.h"
#include "pteryx/session/inspect.h"

namespace pteryx {

// Which count of an operator a call of it belongs to.
uint32_t OperatorUse::* count_of(const graph::Graph& g, const graph::Node& n, const ops::OpDef* def,
                                 const ops::Live& bound, const gpu::Caps& caps);

std::string to_dot(const graph::Graph& g);
Drawing draw(const graph::Graph& g, const gpu::Caps& caps);

}  // namespace pteryx
