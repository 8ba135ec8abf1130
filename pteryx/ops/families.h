// The families of operators that a program has. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <vector>

#include "pteryx/ops/op.h"

namespace pteryx::ops {

using Family = void (*)(std::vector<OpDef>& table);

// All of them; a module for the web may answer with fewer, and has no code of the others then.
std::span<const Family> families();

}  // namespace pteryx::ops
