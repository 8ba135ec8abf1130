// The tokenizer of Hugging Face's kind: added tokens, normalizers, pre-tokenizers, then a model.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>
#include <variant>
#include <vector>

#include "pteryx/llm/tokenizer/added_tokens.h"
#include "pteryx/llm/tokenizer/merges.h"
#include "pteryx/llm/tokenizer/normalizer.h"
#include "pteryx/llm/tokenizer/pre_tokenizer.h"
#include "pteryx/llm/tokenizer/tokenizer.h"
#include "pteryx/llm/tokenizer/unigram.h"
#include "pteryx/llm/tokenizer/words.h"

namespace pteryx::llm {

struct Pipeline {
  AddedTokens added;             // found in the text as it is
  AddedTokens added_normalized;  // found in the normalised text
  std::vector<Normalizer> normalizers;
  std::vector<PreTokenizer> pre_tokenizers;
  std::variant<Bpe, Unigram> model;
  Unit unit = Unit::kByte;
  WordCuts cuts;
};

class PipelineTokenizer final : public Tokenizer {
 public:
  PipelineTokenizer(Vocabulary vocabulary, Pipeline pipeline);

 protected:
  Status encode_text(std::string_view text, const EncodeOptions& options,
                     std::vector<TokenId>& ids) const override;

 private:
  struct Call;
  Status encode_valid(std::string_view text, bool at_start, Call& call) const;
  Status encode_normal(std::string_view text, bool at_start, Call& call) const;
  Status encode_words(std::string_view text, bool at_start, Call& call) const;
  void encode_word(std::string_view word, Call& call) const;

  Pipeline pipeline_;
};

}  // namespace pteryx::llm
