// Tokens that are found in a text before it is cut in any other way.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pteryx/llm/tokenizer/pieces.h"
#include "pteryx/llm/tokenizer/tokenizer.h"
#include "pteryx/llm/tokenizer/trie.h"

namespace pteryx::llm {

struct AddedToken {
  std::string text;
  TokenId id = 0;
  bool special = false;
  bool single_word = false;  // only where no word goes on at either side
  bool left_strip = false;   // takes the spaces before it along
  bool right_strip = false;
};

class AddedTokens {
 public:
  AddedTokens() = default;
  // Tokens without a text are never found.
  explicit AddedTokens(std::vector<AddedToken> tokens);

  struct Part {
    Span span;
    const AddedToken* token = nullptr;  // nullptr: text
  };
  // Cuts a text into tokens and what is between them; the longest token wins.
  std::vector<Part> split(std::string_view text, const EncodeOptions& options) const;

 private:
  bool fits(const AddedToken& token, std::string_view text, size_t begin, size_t end) const;

  std::vector<AddedToken> tokens_;
  std::vector<bool> starts_ = std::vector<bool>(256);  // the first bytes of tokens
  Trie trie_;                                          // to places in tokens_
};

}  // namespace pteryx::llm
