// What this process has locked in memory. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

namespace pteryx::testing {

// Sanitizers replace mlock with nothing.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kLocksArePretended = true;
#elif defined(__has_feature)
inline constexpr bool kLocksArePretended =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kLocksArePretended = false;
#endif

inline int64_t locked_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmLck:")) return std::stoll(line.substr(6));
  }
  return -1;
}

}  // namespace pteryx::testing
