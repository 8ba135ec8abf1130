// Files that stay in memory. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pteryx/base/source.h"
#include "pteryx/base/status.h"

namespace pteryx {

// Reads all of a mapped file into memory and keeps it there for as long as the source lives.
// Errors: kMemory with what the system allows; kUnsupported for sources that are not mapped, and
// where the system has no such thing.
Status lock_in_memory(const Source& source);

}  // namespace pteryx
