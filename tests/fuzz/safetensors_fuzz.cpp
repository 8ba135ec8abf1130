// libFuzzer target: safetensors files. SPDX-License-Identifier: BSD-3-Clause
#include "input.h"
#include "sources.h"

#include "pteryx/convert/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const pteryx::fuzz::Input input(data, size);
  pteryx::convert::Checkpoint c;
  const pteryx::Status s =
      pteryx::convert::parse_safetensors(pteryx::fuzz::source_of(input.bytes()), c);
  if (s.ok()) {
    pteryx::fuzz::read_all(c);
  } else {
    pteryx::fuzz::expect_refusal(s);
  }
  return 0;
}
