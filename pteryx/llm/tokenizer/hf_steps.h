// The steps of a tokenizer.json: normalizers, pre-tokenizers, decoders.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "pteryx/base/status.h"
#include "pteryx/llm/tokenizer/json_fields.h"
#include "pteryx/llm/tokenizer/normalizer.h"
#include "pteryx/llm/tokenizer/pre_tokenizer.h"
#include "pteryx/llm/tokenizer/tokenizer.h"

namespace pteryx::llm {

// Errors of all: kInvalidProgram, and kUnsupported with the name of a step we do not have.

Status read_normalizer(const JsonField& json, std::vector<Normalizer>& steps);

struct HfPreTokenizers {
  std::vector<PreTokenizer> steps;
  bool byte_level = false;  // the model's vocabulary is written in characters for bytes
};
Status read_pre_tokenizer(const JsonField& json, HfPreTokenizers& out);

// What turns the text of a token into what it decodes to. The steps never look past one token, but
// for the spaces at the start of a text.
class HfDecoder {
 public:
  static Result<HfDecoder> read(const JsonField& json);

  Result<std::string> bytes_of(std::string_view token) const { return apply(token, true); }
  // An added token is written in characters, whatever the vocabulary is written in.
  Result<std::string> bytes_of_added(std::string_view token) const { return apply(token, false); }
  LeadingSpaces leading() const { return leading_; }

 private:
  struct ByteLevel {};
  struct ByteFallback {};
  struct Strip {
    std::string what;
    uint32_t start = 0;
    uint32_t stop = 0;
  };
  struct WordEnd {
    std::string suffix;
  };
  using Step = std::variant<ByteLevel, ByteFallback, Replace, Strip, WordEnd>;

  Result<std::string> apply(std::string_view token, bool byte_level) const;
  Status add(const JsonField& json);
  Status add_strip(const JsonField& json);
  Status add_metaspace(const JsonField& json);

  std::vector<Step> steps_;
  bool fused_ = false;
  LeadingSpaces leading_;
};

// Shared by the readers: a {"String": ...} or {"Regex": ...}.
Result<Pattern> read_pattern(const JsonField& json);
// Whether and where a Metaspace step puts its space in front.
Result<PrependWhen> read_prepend(const JsonField& metaspace);

}  // namespace pteryx::llm
