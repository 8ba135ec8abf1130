// libFuzzer target: GGUF files, with the model and the vocabulary in them.
// SPDX-License-Identifier: BSD-3-Clause
#include "input.h"
#include "sources.h"

#include "pteryx/convert/gguf.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const pteryx::fuzz::Input input(data, size);
  const auto file = pteryx::convert::GgufFile::parse(input.bytes());
  if (!file.ok()) {
    pteryx::fuzz::expect_refusal(file.status());
    return 0;
  }
  pteryx::fuzz::read_all(file->tensors());
  const auto model = pteryx::convert::model_from_gguf(input.bytes());
  if (model.ok()) {
    pteryx::fuzz::expect_sound(model->shape);
  } else {
    pteryx::fuzz::expect_refusal(model.status());
  }
  return 0;
}
