// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/lock.h"

#include <fmt/format.h>

namespace pteryx {

Status lock_in_memory(const Source& source) {
  return unsupported(fmt::format("{}: this system cannot lock files in memory", source.name()));
}

}  // namespace pteryx
