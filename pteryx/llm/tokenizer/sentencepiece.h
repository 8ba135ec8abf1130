// The tokenizers of SentencePiece's kind: the whole text at once, spaces as characters of tokens.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "pteryx/llm/tokenizer/added_tokens.h"
#include "pteryx/llm/tokenizer/charsmap.h"
#include "pteryx/llm/tokenizer/merges.h"
#include "pteryx/llm/tokenizer/tokenizer.h"
#include "pteryx/llm/tokenizer/trie.h"
#include "pteryx/llm/tokenizer/unigram.h"
#include "pteryx/llm/tokenizer/words.h"

namespace pteryx::llm {

enum class SpmType : uint8_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

struct SpmPiece {
  std::string text;
  float score = 0;
  SpmType type = SpmType::kNormal;
};

struct SpmModel {
  std::vector<SpmPiece> pieces;  // by id
  bool unigram = false;          // otherwise pairs are merged
  bool byte_fallback = false;    // byte pieces stand for characters without a piece
  bool dummy_prefix = true;      // a text starts with a space
  bool remove_extra_spaces = false;
  std::string space = "\xE2\x96\x81";  // what pieces have for a space
  std::string unknown_surface = " \xE2\x81\x87 ";
  Charsmap charsmap;
  std::optional<TokenId> bos;
  std::optional<TokenId> eos;
};

// Errors: kInvalidProgram for pieces that contradict each other.
Result<TokenizerPtr> make_sentencepiece(SpmModel model);

}  // namespace pteryx::llm
