// What Unicode's tables say of characters and texts: utf8proc natively (unicode_tables_native.cpp),
// the browser's own in a page (unicode_tables_web.cpp). unicode.h is what others include.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pteryx/base/status.h"
#include "pteryx/llm/tokenizer/unicode.h"

namespace pteryx::llm {

// The general categories, as coarse as tokenizers and templates ask for them. The numbers are part
// of the interface to the page.
enum class CharKind : int32_t {
  kOther = 0,
  kLetter = 1,            // L
  kMark = 2,              // M
  kDigit = 3,             // Nd
  kLetterNumber = 4,      // Nl
  kOtherNumber = 5,       // No
  kConnector = 6,         // Pc
  kOtherPunctuation = 7,  // the rest of P
};
CharKind kind_of(char32_t c);

// normalize() of a text that is not ASCII alone.
Result<std::string> normalize_by_tables(std::string_view text, NormalForm form);

}  // namespace pteryx::llm
