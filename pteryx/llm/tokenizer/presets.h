// How the families of byte-level models cut a text, by the names that GGUF files use.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>
#include <vector>

#include "pteryx/base/status.h"
#include "pteryx/llm/tokenizer/pre_tokenizer.h"

namespace pteryx::llm {

// Errors: kUnsupported for a name that is not known.
Result<std::vector<PreTokenizer>> preset_pre_tokenizers(std::string_view name);

// Whether a word that is a token is taken as it is, whatever the merges say.
bool preset_takes_whole_words(std::string_view name);

}  // namespace pteryx::llm
