// What the exported functions of the module that runs programs share.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>

#include "result.h"

#include "pteryx/gpu/device.h"
#include "pteryx/pteryx.h"

namespace pteryx::web {

Handle add_device(std::shared_ptr<gpu::Device> device);
Result<std::shared_ptr<gpu::Device>> find_device(Handle handle);

// What the script says of how to load; `job` is told back with the progress.
Result<LoadOptions> read_load_options(const Json& j, std::shared_ptr<gpu::Device> device);

Json describe(const ValueInfo& info, std::string name);
Json describe(const MethodInfo& info);

}  // namespace pteryx::web
