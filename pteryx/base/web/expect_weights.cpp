// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/expect_weights.h"

#include <cstdlib>
#include <limits>

#include "pteryx/base/web/host.h"

extern "C" {
// All that is open will be read as a whole.
PTERYX_IMPORT(sources_download) void pteryx_sources_download();
}

namespace pteryx {

// What the allocator has got it keeps. Where there is not as much, it may do with what there is.
void expect_weights(uint64_t host_bytes) {
  pteryx_sources_download();
  if (host_bytes > std::numeric_limits<size_t>::max()) return;
  void* volatile all = std::malloc(static_cast<size_t>(host_bytes));
  std::free(all);
}

}  // namespace pteryx
