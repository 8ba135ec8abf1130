// libFuzzer target: tokenizer files of every kind, and the use of what they hold.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "check.h"
#include "input.h"

#include "pteryx/llm/tokenizer/tokenizer.h"

namespace {

using pteryx::TokenId;
using pteryx::llm::Tokenizer;

// Whether every id of a text can be decoded again; a text may be refused.
bool is_sound(const Tokenizer& t) {
  for (const char* const text :
       {"", " Hello  w\xC3\xB6rld 123\n\t<s>x</s>", "\xE4\xBD\xA0 \xF0\x9F\x98\x80 \xFF\xE2\x82"}) {
    const auto ids = t.encode(text, {.add_bos = true, .add_eos = true, .parse_special = true});
    if (!ids.ok()) continue;
    if (!t.decode(*ids, pteryx::llm::Specials::kShow).ok()) return false;
  }
  const std::vector<TokenId> past = {static_cast<TokenId>(t.size())};
  return !t.decode(past, pteryx::llm::Specials::kShow).ok();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const pteryx::fuzz::Input input(data, size);
  const auto tokenizer = pteryx::llm::read_tokenizer(input.bytes());
  if (tokenizer.ok() && !is_sound(**tokenizer)) std::abort();
  if (!tokenizer.ok() && !pteryx::fuzz::is_refusal(tokenizer.status())) std::abort();
  return 0;
}
