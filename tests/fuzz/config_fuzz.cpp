// libFuzzer target: config.json of Hugging Face folders. SPDX-License-Identifier: BSD-3-Clause
#include "input.h"
#include "sources.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const pteryx::fuzz::Input input(data, size);
  const auto shape = pteryx::convert::shape_from_config(input.bytes());
  if (shape.ok()) {
    pteryx::fuzz::expect_sound(*shape);
  } else {
    pteryx::fuzz::expect_refusal(shape.status());
  }
  return 0;
}
