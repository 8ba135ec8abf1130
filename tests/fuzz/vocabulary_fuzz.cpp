// libFuzzer target: the vocabulary that a program carries, and its tokenizer.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>

#include "check.h"
#include "input.h"

#include "pteryx/llm/tokenizer/embedded.h"
#include "pteryx/program/vocabulary.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const pteryx::fuzz::Input input(data, size);
  const auto v = pteryx::program::read_vocabulary(input.bytes());
  if (!v.ok() && !pteryx::fuzz::is_refusal(v.status())) std::abort();
  if (v.ok() && v->tokens.size() > size) std::abort();
  const auto t = pteryx::llm::read_embedded_tokenizer(input.bytes(), "gguf");
  if (!t.ok() && !pteryx::fuzz::is_refusal(t.status())) std::abort();
  return 0;
}
