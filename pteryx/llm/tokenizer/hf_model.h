// The "model" of a tokenizer.json: its vocabulary and how it cuts a word.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <variant>

#include "pteryx/base/status.h"
#include "pteryx/llm/tokenizer/json_fields.h"
#include "pteryx/llm/tokenizer/merges.h"
#include "pteryx/llm/tokenizer/tokenizer.h"
#include "pteryx/llm/tokenizer/unigram.h"
#include "pteryx/llm/tokenizer/words.h"

namespace pteryx::llm {

struct HfModel {
  Vocabulary vocabulary;  // tokens and the unknown one; the rest is for the caller
  std::variant<Bpe, Unigram> model;
  WordCuts cuts;
};

// Errors: kInvalidProgram, kUnsupported.
Result<HfModel> read_hf_model(const JsonField& json, Unit unit);

}  // namespace pteryx::llm
