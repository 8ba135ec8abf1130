// The names that families of models give to the ends of a text, for files that do not say.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pteryx/llm/tokenizer/tokenizer.h"

namespace pteryx::llm {

// Adds to vocabulary.eos the special tokens that end a text or a turn, and sets bos if it is not
// set.
void add_known_ends(Vocabulary& vocabulary);

}  // namespace pteryx::llm
