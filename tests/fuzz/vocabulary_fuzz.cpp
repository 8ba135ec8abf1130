// libFuzzer target: the vocabulary that a program carries. SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>

#include "check.h"
#include "input.h"

#include "pteryx/program/vocabulary.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const pteryx::fuzz::Input input(data, size);
  const auto v = pteryx::program::read_vocabulary(input.bytes());
  if (!v.ok() && !pteryx::fuzz::is_refusal(v.status())) std::abort();
  if (v.ok() && v->tokens.size() > size) std::abort();
  return 0;
}
