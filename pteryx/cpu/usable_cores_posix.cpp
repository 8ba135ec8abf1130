// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif

#include "pteryx/cpu/pool.h"

namespace pteryx::cpu {
namespace {

#if defined(__linux__)
// One line of a file of the system; "" where there is none.
std::string line_of(const std::string& path) {
  std::string line(64, '\0');
  std::FILE* const file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return "";
  line.resize(std::fread(line.data(), 1, line.size(), file));
  std::fclose(file);
  return line;
}

// Of the processors that this process may run on, those that are the first of their core.
size_t allowed_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return 0;
  std::set<std::string> cores;
  for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    const std::string siblings = line_of(folder + "thread_siblings_list");
    cores.insert(siblings.empty() ? std::to_string(cpu) : siblings);
  }
  return cores.size();
}
#endif

}  // namespace

size_t usable_cores() {
  size_t cores = 0;
#if defined(__linux__)
  cores = allowed_cores();
#endif
  if (cores == 0) cores = std::thread::hardware_concurrency();
  return std::max<size_t>(cores, 1);
}

}  // namespace pteryx::cpu
