// What a layout asks of the device, compared with what the device allows.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pteryx/base/status.h"
#include "pteryx/gpu/caps.h"
#include "pteryx/graph/graph.h"
#include "pteryx/session/layout.h"

namespace pteryx {

// What a shader can see of a constant: weights of more bytes are split, see fuse.
uint64_t most_constant_bytes(const gpu::Caps& caps);

// Something that is larger than a limit.
struct Excess {
  std::string what;        // "weight value 7, u8 [262144, 2048]"
  uint64_t amount = 0;     // bytes, or buffers
  std::string_view limit;  // a name of gpu::all_limits()
  uint64_t allowed = 0;
  std::string_view remedy;  // what makes it smaller; may be ""
};
std::string to_string(const Excess& e);

// Everything at its largest, each tensor once.
std::vector<Excess> find_excess(const graph::Graph& g, const Layout& layout, const gpu::Caps& caps);
// The same before anything is made. Errors: kUnsupported with all that is too large.
Status check_limits(const graph::Graph& g, const Layout& layout, const gpu::Caps& caps);
// What a node needs at live sizes: its temporaries may be larger than at the bound.
Status check_plan(const graph::Graph& g, const graph::Node& n, const NodePlan& plan,
                  const gpu::Caps& caps);

}  // namespace pteryx
