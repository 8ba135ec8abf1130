// Dates in chat templates. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ctime>
#include <string>
#include <string_view>

namespace pteryx::llm::chat {

// As strftime, in English whatever the locale is, and with "%-d" for a number without padding. Like
// Python's for a time without a zone, it writes nothing for %z and %Z; what it does not know stands
// as it is.
std::string time_text(std::string_view format, const std::tm& time);

}  // namespace pteryx::llm::chat
