// libFuzzer target: GGUF files, with the model and the vocabulary in them.
// SPDX-License-Identifier: BSD-3-Clause
#include "input.h"
#include "sources.h"

#include "pteryx/convert/gguf.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const pteryx::fuzz::Input input(data, size);
  auto file = pteryx::convert::GgufFile::parse(pteryx::fuzz::source_of(input.bytes()));
  if (!file.ok()) {
    pteryx::fuzz::expect_refusal(file.status());
    return 0;
  }
  pteryx::fuzz::read_all(file->tensors());
  std::vector<pteryx::convert::GgufFile> parts;
  parts.push_back(std::move(file).value());
  const auto model =
      pteryx::convert::model_from_gguf(std::move(parts), pteryx::convert::TokenizerFrom::kSource);
  if (model.ok()) {
    pteryx::fuzz::expect_sound(model->shape);
  } else {
    pteryx::fuzz::expect_refusal(model.status());
  }
  return 0;
}
