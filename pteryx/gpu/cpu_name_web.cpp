// Pages are not told the name of the processor. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/cpu_device.h"

namespace pteryx::gpu {

std::string cpu_name() { return "CPU"; }

}  // namespace pteryx::gpu
