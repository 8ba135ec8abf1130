// GGUF models that are split over files: NAME-00001-of-00003.gguf and so on.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "pteryx/base/status.h"
#include "pteryx/convert/gguf.h"

namespace pteryx::convert {

// Whether a path is named like a part of several; the file may be whole for all that.
bool is_part_name(const std::string& path);

// The paths of all parts, in order, given any of them; the path itself where the file is the whole
// model. Errors: kInvalidProgram for a part that is not named like one.
Result<std::vector<std::string>> gguf_parts(const std::string& path, const GgufFile& file);

// The headers of all those files. Errors: kIo, and those of GgufFile::parse.
Result<std::vector<GgufFile>> open_gguf(const std::string& path);

}  // namespace pteryx::convert
