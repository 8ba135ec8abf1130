// One execution plan of a .pte file -> MethodRecord.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pteryx/base/status.h"
#include "pteryx/program/constants.h"
#include "pteryx/program/container.h"
#include "pteryx/program/program.h"
#include "pteryx/program/reader.h"

namespace pteryx::pte {
struct ExecutionPlan;
}

namespace pteryx::program {

// What a method's records may point at.
struct MethodSources {
  const Container& container;
  const Constants& constants;
  const NamedData& named_data;
};

// The plan has a name, values, inputs, outputs, chains, delegates and buffer sizes. Errors:
// kInvalidProgram, kUnsupported.
Result<MethodRecord> read_method(const pte::ExecutionPlan& plan, const MethodSources& sources,
                                 Budget& budget);

}  // namespace pteryx::program
