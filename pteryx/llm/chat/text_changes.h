// Searches and changes of texts as Python makes them, each counted as it goes.
// Errors of all: kInvalidArgument past a limit.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "pteryx/base/status.h"
#include "pteryx/llm/chat/builders.h"
#include "pteryx/llm/chat/meter.h"

namespace pteryx::llm::chat {

using Change = Status (*)(std::string_view text, TextBuilder& out);
Status upper(std::string_view text, TextBuilder& out);
Status lower(std::string_view text, TextBuilder& out);
Status capitalize(std::string_view text,
                  TextBuilder& out);                    // the first letter large, the rest small
Status title(std::string_view text, TextBuilder& out);  // the first letter of every word large
Status title_words(std::string_view text, TextBuilder& out);  // words as the filter sees them
// Whether a change leaves a text as it is that has letters to change.
Result<bool> is_all_case(Meter& meter, Change change, std::string_view text);
Result<Value> changed(Meter& meter, Change change, std::string_view text);

enum class Ends { kBoth, kLeft, kRight };
// Without characters at its ends: those of `chars`, or spaces if that is empty.
Result<std::string_view> strip(Meter& meter, std::string_view text, std::string_view chars,
                               Ends ends);

// Where `what` starts, at or after `from`; rfind where it ends last. npos if it does not.
Result<size_t> find(Meter& meter, std::string_view text, std::string_view what, size_t from = 0);
Result<size_t> rfind(Meter& meter, std::string_view text, std::string_view what);

// At most `most` times; all if that is below 0.
Result<Value> replaced(Meter& meter, std::string_view text, std::string_view from,
                       std::string_view to, int64_t most);

// Characters, where bytes are not one each.
Result<size_t> count_chars(Meter& meter, std::string_view text);
// The byte where a character starts; the text has at least so many.
Result<size_t> offset_of_char(Meter& meter, std::string_view text, size_t index);
// Where the character that ends before a byte starts.
size_t char_before(std::string_view text, size_t end);

bool is_python_space(char32_t c);

}  // namespace pteryx::llm::chat
