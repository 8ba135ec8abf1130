// Changes to texts as Python makes them. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

namespace pteryx::llm::chat {

std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);  // the first letter large, the rest small
std::string title(std::string_view text);       // the first letter of every word large

enum class Ends { kBoth, kLeft, kRight };
// Without characters at its ends: those of `chars`, or spaces if that is empty.
std::string_view strip(std::string_view text, std::string_view chars, Ends ends);

std::string replace_all(std::string_view text, std::string_view from, std::string_view to,
                        int64_t most);

bool is_python_space(char32_t c);

}  // namespace pteryx::llm::chat
