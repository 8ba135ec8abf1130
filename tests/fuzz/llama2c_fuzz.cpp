// libFuzzer target: llama2.c checkpoints, and kinds of files. SPDX-License-Identifier: BSD-3-Clause
#include "input.h"
#include "sources.h"

#include "pteryx/convert/file_kind.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const pteryx::fuzz::Input input(data, size);
  const auto model = pteryx::convert::model_from_llama2c(pteryx::fuzz::source_of(input.bytes()));
  const auto kind = pteryx::convert::file_kind(pteryx::fuzz::source_of(input.bytes()));
  if (!kind.ok()) std::abort();
  if (model.ok()) {
    pteryx::fuzz::expect_sound(model->shape);
    pteryx::fuzz::read_all(model->weights);
  } else {
    pteryx::fuzz::expect_refusal(model.status());
  }
  return 0;
}
