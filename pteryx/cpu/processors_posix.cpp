// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#endif
#include <unistd.h>

#include "pteryx/cpu/processors.h"

namespace pteryx::cpu {
namespace {

// Empty where the system does not tell.
std::vector<size_t> allowed_processors() {
  std::vector<size_t> all;
#if defined(__linux__)
  // The system refuses a set that is smaller than its own.
  for (size_t size = CPU_SETSIZE; size <= size_t{1} << 20U; size *= 2) {
    cpu_set_t* const set = CPU_ALLOC(size);
    if (set == nullptr) return all;
    const size_t bytes = CPU_ALLOC_SIZE(size);
    CPU_ZERO_S(bytes, set);
    const bool told = sched_getaffinity(0, bytes, set) == 0;
    for (size_t cpu = 0; told && cpu < size; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes, set)) all.push_back(cpu);
    }
    CPU_FREE(set);
    if (told) return all;
  }
#endif
  return all;
}

}  // namespace

Processors processors() {
  const std::vector<size_t> allowed = allowed_processors();
  const size_t all = std::max(std::thread::hardware_concurrency(), 1U);
  if (allowed.empty()) return {.online = all, .allowed = all, .cores = all, .quota = {}};
  Processors p = read_processors("", allowed);
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  p.online = std::max(p.allowed, static_cast<size_t>(std::max(online, 1L)));
  return p;
}

}  // namespace pteryx::cpu
