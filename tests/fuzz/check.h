// What every mutated or fuzzed file goes through: the whole way from bytes to a plan of every
// method, which is all that a load does before it takes GPU memory.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pteryx/base/bytes.h"
#include "pteryx/base/status.h"

namespace pteryx::fuzz {

// Reads and plans a program with all of its delegates, or reads a data file if that is what the
// bytes are. The bytes start at an address aligned to 16. An error is an answer; only a crash, a
// hang or a hunger for memory is a failure.
Status check(Bytes file);

// Whether an error is one that a file may cause, with something to read in it.
bool is_refusal(const Status& status);

}  // namespace pteryx::fuzz
