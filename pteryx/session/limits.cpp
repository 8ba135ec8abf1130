// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/limits.h"

#include <string_view>

#include <fmt/format.h>

namespace pteryx {
namespace {

struct Limits {
  const gpu::Caps& caps;

  Status buffer(std::string_view label, uint64_t bytes) const {
    if (bytes <= caps.max_buffer_bytes) return {};
    return memory_error(fmt::format("buffer '{}' of {} bytes: the device allows {} bytes", label,
                                    bytes, caps.max_buffer_bytes));
  }
  // One that shaders see as a whole.
  Status bound(std::string_view label, uint64_t bytes) const {
    PTERYX_TRY(buffer(label, bytes));
    if (bytes <= caps.max_binding_bytes) return {};
    return memory_error(fmt::format("buffer '{}' of {} bytes: the device binds {} bytes at most",
                                    label, bytes, caps.max_binding_bytes));
  }
};

}  // namespace

Status check_limits(const graph::Graph& g, const Layout& layout, const gpu::Caps& caps) {
  const Limits limits{caps};
  for (const Root& r : layout.roots) {
    const bool own = r.gpu && r.slot == kNone && r.inbox == kNoOffset;
    if (own) PTERYX_TRY(limits.bound(g.label(r.value), r.gpu_bytes));
  }
  for (size_t i = 0; i < layout.slot_bytes.size(); ++i)
    PTERYX_TRY(limits.bound(fmt::format("slot {}", i), layout.slot_bytes[i]));
  for (size_t i = 0; i < layout.scratch_bytes.size(); ++i)
    PTERYX_TRY(limits.bound(fmt::format("scratch {}", i), layout.scratch_bytes[i]));
  for (const Layout::Relaid& c : layout.relaid)
    PTERYX_TRY(limits.bound(fmt::format("{}, {}", g.label(c.source), c.layout), c.bytes));
  PTERYX_TRY(limits.buffer("scalars and inputs", layout.inbox_bytes));
  return limits.buffer("readback", layout.readback_bytes);
}

}  // namespace pteryx
