// What can be the name of a file. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "pteryx/base/status.h"

namespace pteryx {

// The system would read a name up to a zero byte and open another file. Errors: kIo.
Status check_path(const std::string& path);

}  // namespace pteryx
