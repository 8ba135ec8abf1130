// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/lock.h"

#include <cerrno>
#include <optional>
#include <string>
#include <system_error>

#include <sys/mman.h>
#include <sys/resource.h>

#include <fmt/format.h>

#include "pteryx/base/checked.h"

namespace pteryx {

// The end of the mapping is the end of the lock.
Status lock_in_memory(const Source& source) {
  const std::optional<Bytes> bytes = source.view(0, source.size());
  if (!bytes)
    return unsupported(fmt::format("{}: only mapped files can be locked in memory", source.name()));
  if (bytes->empty() || ::mlock(bytes->data(), bytes->size()) == 0) return {};
  const std::string problem =
      fmt::format("{}: cannot lock its {} bytes in memory: {}", source.name(), bytes->size(),
                  std::generic_category().message(errno));
  rlimit limit = {};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return memory_error(problem);
  return memory_error(
      fmt::format("{}; this process may lock {} (RLIMIT_MEMLOCK): allow it more, such as with "
                  "`ulimit -l {}`, or do not lock",
                  problem, limit.rlim_cur, div_up(bytes->size(), 1024)));
}

}  // namespace pteryx
