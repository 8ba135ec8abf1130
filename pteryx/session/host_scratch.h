// What kernels on the CPU take while they run. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "pteryx/base/precision.h"
#include "pteryx/cpu/pool.h"
#include "pteryx/graph/graph.h"
#include "pteryx/session/layout.h"

namespace pteryx {

// Bytes of the arena that nodes on the CPU share at the bound: every kernel is asked, none runs.
uint64_t host_scratch_bytes(const graph::Graph& g, const Layout& layout, cpu::Pool& pool,
                            Precision precision);

}  // namespace pteryx
