// The embedded kernels, expanded once for each set of options that somebody asks for.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string_view>

#include "pteryx/base/status.h"
#include "pteryx/ops/kernel/expand.h"

namespace pteryx::ops {

// From any thread. Errors: those of expand_kernel.
Result<std::shared_ptr<const Kernel>> find_kernel(std::string_view file, const Options& options);

// Whether a file itself declares an option.
bool has_option(std::string_view file, std::string_view option);

}  // namespace pteryx::ops
