// libFuzzer target: an external data file. SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "check.h"
#include "input.h"

#include "pteryx/program/testing/alone.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const pteryx::fuzz::Input input(data, size);
  pteryx::program::NamedData named;
  const pteryx::Status status =
      pteryx::program::testing::read_data_file(input.bytes(), "data file", named);
  if (!status.ok() && !pteryx::fuzz::is_refusal(status)) std::abort();
  for (const auto& [key, blob] : named) {
    if (blob.data.size > size || key.empty()) std::abort();
  }
  return 0;
}
