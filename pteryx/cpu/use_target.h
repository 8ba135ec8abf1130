// The sets of instructions that kernels are compiled for, and forcing one of them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pteryx/base/status.h"

namespace pteryx::cpu {

// Highway's names of the targets that this processor runs, the one in use first.
std::vector<std::string> targets();

// From now on every kernel is that of the target; "": of the best there is. kInvalidArgument if the
// processor does not run it. To be called while no kernel runs.
Status use_target(std::string_view name);

}  // namespace pteryx::cpu
