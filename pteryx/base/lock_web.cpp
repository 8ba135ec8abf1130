// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/lock.h"

namespace pteryx {

Status lock_in_memory(const Source& /*source*/) {
  return unsupported("memory of a page cannot be locked");
}

}  // namespace pteryx
