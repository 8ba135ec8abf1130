// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/same_file.h"

#include <filesystem>
#include <system_error>

namespace pteryx {

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return std::filesystem::equivalent(a, b, error) && !error;
}

}  // namespace pteryx
