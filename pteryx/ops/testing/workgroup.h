// Sizes of workgroups, read from the text of a kernel, and runs within a limit to them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {

// Invocations in a workgroup of the dispatch; 0 if its text does not tell.
uint32_t workgroup_size(const PlannedDispatch& d);
// On the GPU, planned for a device whose workgroups hold so many invocations; a dispatch that asks
// for more is an error.
Result<std::vector<TestTensor>> run_within(const Case& c, uint32_t invocations);

}  // namespace pteryx::ops::testing
