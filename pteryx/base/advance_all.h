// Several jobs side by side.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pteryx/base/status.h"

namespace pteryx {

// Advances every one of them, so that what they wait for can come at once; true once all are done.
template <typename Jobs>
Result<bool> advance_all(Jobs&& jobs) {
  bool all = true;
  for (auto& job : jobs) {
    PTERYX_ASSIGN(const bool done, job.advance());
    all = all && done;
  }
  return all;
}

}  // namespace pteryx
