// A folder of kernels, for `inspect --kernels`. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "pteryx/base/status.h"
#include "pteryx/session/kernels.h"

namespace pteryx::cli {

// That the folder is not there, empty, or holds nothing but kernels that were written before.
// Errors: kIo, kInvalidArgument with the name of what is in the way.
Status check_kernel_folder(const std::string& folder);

// Makes the folder hold these kernels and no others. Gives the names of the files. Errors: kIo, and
// those above.
Result<std::vector<std::string>> write_kernels(const std::string& folder,
                                               const std::vector<KernelText>& kernels);

}  // namespace pteryx::cli
