// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/heap.h"

#include <cstdlib>
#include <limits>

namespace pteryx {

// What the allocator has got it keeps. Where there is not as much, it may do with what there is.
void reserve_heap(uint64_t bytes) {
  if (bytes > std::numeric_limits<size_t>::max()) return;
  void* volatile all = std::malloc(static_cast<size_t>(bytes));
  std::free(all);
}

}  // namespace pteryx
