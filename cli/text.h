// Texts from files and pipes. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "pteryx/base/status.h"

namespace pteryx::cli {

// The text of a file, a pipe, or stdin ("-"). Errors: kIo, kInvalidArgument for more than 64 MiB.
Result<std::string> read_text(const std::string& path);

}  // namespace pteryx::cli
