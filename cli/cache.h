// Programs of models, converted where that is necessary. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

#include "progress.h"

#include "pteryx/base/status.h"
#include "pteryx/convert/program_file.h"

namespace pteryx::cli {

// The program of a model, converted on so many threads (0: as many as pay) and kept in the folder
// that the environment names; notes say what is done.
// Errors: those of convert::ProgramFile, kInvalidArgument for a variable.
Result<convert::ProgramFile> open_program(const std::string& model, uint32_t threads,
                                          Progress& progress);
// Makes anew what was kept: it cannot be used.
Status repeat_conversion(convert::ProgramFile& program, Progress& progress);

// Where compiled shaders are kept, as the environment says; "" for nowhere.
std::string pipeline_folder();

}  // namespace pteryx::cli
