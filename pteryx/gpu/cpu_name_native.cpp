// The name of the processor, from where Linux tells it. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <fstream>
#include <string>

#include "pteryx/gpu/cpu_device.h"

namespace pteryx::gpu {

// "model name	: AMD EPYC 9654 96-Core Processor"; processors that are not x86 have no such line.
std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(':');
    const size_t first = line.find_first_not_of(" \t", std::min(colon, line.size() - 1) + 1);
    if (first == std::string::npos) break;
    return line.substr(first, line.find_last_not_of(" \t") - first + 1);
  }
  return "CPU";
}

}  // namespace pteryx::gpu
