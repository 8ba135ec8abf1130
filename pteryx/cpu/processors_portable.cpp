// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/processors.h"

#include <algorithm>
#include <thread>

namespace pteryx::cpu {

Processors processors() {
  const size_t all = std::max(std::thread::hardware_concurrency(), 1U);
  return {.online = all, .allowed = all, .cores = all, .quota = {}};
}

}  // namespace pteryx::cpu
