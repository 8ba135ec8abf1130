// The files of a program.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <string>
#include <vector>

#include "pteryx/base/source.h"

namespace pteryx::program {

// Each as map_source. Errors: kIo.
Result<std::vector<SourcePtr>> map_files(std::span<const std::string> paths);

}  // namespace pteryx::program
