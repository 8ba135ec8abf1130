// A template in a process of its own, to see what it takes. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

namespace pteryx::llm::testing {

// A sanitizer keeps freed memory back and takes several times as long.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

struct Outcome {
  bool ended = false;  // or killed by a signal
  bool accepted = false;
  std::string message;
  double seconds = 0;
  long peak_kib = 0;
};

// Reads and renders a template in a process of its own, for its peak memory alone.
Outcome render_alone(const std::string& source, uint64_t most_work);

// Of this process, on a processor: how busy the machine is does not count.
double processor_seconds();

}  // namespace pteryx::llm::testing
