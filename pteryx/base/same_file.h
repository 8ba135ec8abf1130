// Whether two paths are one file. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace pteryx {

// By identity: also through symbolic and hard links. False where either does not exist.
bool same_file(const std::string& a, const std::string& b);

}  // namespace pteryx
