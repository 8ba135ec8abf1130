// Limits of a device that is not here, for `inspect`.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "pteryx/base/status.h"
#include "pteryx/gpu/caps.h"

namespace pteryx::cli {

// "default": what WebGPU promises everywhere. Otherwise a file: what `doctor --json` printed, of
// which the GPU that would be used counts, with what it can do, or a JSON object of limits by their
// names there; limits that it leaves out are WebGPU's. Errors: kIo, kInvalidProgram.
Result<gpu::Caps> read_limits(const std::string& from);

}  // namespace pteryx::cli
