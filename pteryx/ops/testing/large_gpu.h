// What plans are chosen for in tests: a GPU of 132 processors that has all there is, as an H200.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pteryx/gpu/caps.h"

namespace pteryx::ops {

inline gpu::Caps large_gpu() {
  gpu::Caps caps;
  caps.f16 = caps.subgroups = caps.subgroup_matrix = caps.dot4 = true;
  caps.subgroup_min = caps.subgroup_max = 32;
  caps.max_binding_bytes = uint64_t{2} << 30;
  caps.max_workgroup_bytes = 49152;
  caps.max_invocations = caps.max_workgroup_size_x = 1024;
  caps.max_storage_buffers = 16;
  caps.bounds_checks = false;
  caps.sizes = {.processors = 132, .invocations = 2048};
  return caps;
}

}  // namespace pteryx::ops
