// SPDX-License-Identifier: BSD-3-Clause
#include "terminal_text.h"

#include <fmt/format.h>

#include "output.h"

#include "pteryx/base/utf8.h"

namespace pteryx::cli {

std::string terminal_text(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = char_at(text, at);
    const bool control = c.code < 0x20 || (c.code >= 0x7F && c.code < 0xA0);
    if (!control || c.code == '\n' || c.code == '\t') {
      append_utf8(out, c.code);
    } else if (c.code != '\r') {
      out += fmt::format("\\x{:02x}", static_cast<uint32_t>(c.code));
    }
    at += c.size_bytes;
  }
  return out;
}

void write_text(std::string_view text) {
  write(stdout_is_terminal() ? terminal_text(text) : std::string(text));
}

}  // namespace pteryx::cli
