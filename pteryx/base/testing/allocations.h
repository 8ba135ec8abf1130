// Counts the heap allocations that Pteryx's own code makes on this thread.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace pteryx::testing {

// Counts from construction to stop(). What the WebGPU library and its drivers allocate is not
// counted.
class AllocationCount {
 public:
  AllocationCount();
  ~AllocationCount();
  AllocationCount(const AllocationCount&) = delete;
  AllocationCount& operator=(const AllocationCount&) = delete;
  int stop();
};

}  // namespace pteryx::testing
