// A model's text for stdout. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

namespace pteryx::cli {

// Without what would steer a terminal: control characters but newlines and tabs are spelled out
// ("\x1b"), and carriage returns are left out. Whole characters of UTF-8.
std::string terminal_text(std::string_view text);

// To stdout: as it is through a pipe, and as terminal_text to a terminal.
void write_text(std::string_view text);

}  // namespace pteryx::cli
