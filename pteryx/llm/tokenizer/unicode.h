// Properties of characters and the normal forms, by Unicode's tables.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pteryx/base/status.h"

namespace pteryx::llm {

bool is_space(char32_t c);        // White_Space
bool is_word(char32_t c);         // what \w is: letters, marks, digits, connectors
bool is_numeric(char32_t c);      // any of Nd, Nl, No
bool is_punctuation(char32_t c);  // P, and ASCII's symbols
bool is_mark(char32_t c);         // M

char32_t to_lower(char32_t c);
char32_t to_upper(char32_t c);
char32_t to_title(char32_t c);

enum class NormalForm : uint8_t { kNfc, kNfd, kNfkc, kNfkd };

// Errors: kInvalidArgument if the text is not UTF-8, kMemory.
Result<std::string> normalize(std::string_view text, NormalForm form);

// How many bytes of space there are at an end of a text.
size_t leading_space(std::string_view text);
size_t trailing_space(std::string_view text);

}  // namespace pteryx::llm
