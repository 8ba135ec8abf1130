// The unigram model: of all the ways to cut a text into tokens, the one with the best sum of
// scores.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "pteryx/llm/tokenizer/tokenizer.h"
#include "pteryx/llm/tokenizer/trie.h"

namespace pteryx::llm {

class Unigram {
 public:
  struct Piece {
    std::string_view text;
    TokenId id = 0;
    float score = 0;
  };
  // `unknown` stands for characters that are in no token, a run of them for one `unknown`; byte
  // tokens come before it.
  Unigram(const std::vector<Piece>& pieces, TokenId unknown,
          std::optional<std::array<TokenId, 256>> byte_tokens);

  // Appends the ids of a UTF-8 text.
  void encode(std::string_view text, std::vector<TokenId>& ids) const;

 private:
  Trie trie_;  // to places in scores_ and ids_
  std::vector<float> scores_;
  std::vector<TokenId> ids_;
  TokenId unknown_;
  float unknown_score_ = 0;
  std::optional<std::array<TokenId, 256>> byte_tokens_;
};

}  // namespace pteryx::llm
