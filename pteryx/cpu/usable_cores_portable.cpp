// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <thread>

#include "pteryx/cpu/pool.h"

namespace pteryx::cpu {

size_t usable_cores() { return std::max(std::thread::hardware_concurrency(), 1U); }

}  // namespace pteryx::cpu
