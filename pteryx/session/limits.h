// What a layout asks of the device, compared with what the device allows.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pteryx/base/status.h"
#include "pteryx/gpu/caps.h"
#include "pteryx/graph/graph.h"
#include "pteryx/session/layout.h"

namespace pteryx {

// Every buffer at its largest, before any is made. Errors: kMemory with the buffer, its size and
// the limit.
Status check_limits(const graph::Graph& g, const Layout& layout, const gpu::Caps& caps);

}  // namespace pteryx
