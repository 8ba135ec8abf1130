// libFuzzer target: a .pte with its delegates. SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "check.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const pteryx::fuzz::Input input(data, size);
  const pteryx::Status status = pteryx::fuzz::check(input.bytes());
  if (!status.ok() && !pteryx::fuzz::is_refusal(status)) std::abort();
  return 0;
}
