// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/path.h"

#include <fmt/format.h>

#include "pteryx/base/excerpt.h"

namespace pteryx {

Status check_path(const std::string& path) {
  if (path.empty()) return io_error("expected the name of a file, got none");
  if (path.find('\0') == std::string::npos) return {};
  return io_error(fmt::format("{}: a file name cannot hold a zero byte", excerpt(path)));
}

}  // namespace pteryx
