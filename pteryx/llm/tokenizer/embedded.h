// The tokenizer that a program carries in its named data. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string_view>

#include "pteryx/base/bytes.h"
#include "pteryx/base/status.h"
#include "pteryx/llm/tokenizer/tokenizer.h"

namespace pteryx::llm {

// `kind` is what program::kTokenizerKindKey holds: "gguf" is a program::Vocabulary, the content of
// any other file says what it is. Errors: kInvalidProgram, kUnsupported.
Result<TokenizerPtr> read_embedded_tokenizer(Bytes tokenizer, std::string_view kind);
// The same of the kind "gguf" alone.
Result<TokenizerPtr> read_gguf_tokenizer(Bytes tokenizer);

// Errors: kInvalidProgram for a tokenizer with more tokens than a model's vocabulary.
Status check_fit(const Tokenizer& tokenizer, int64_t vocabulary);

}  // namespace pteryx::llm
