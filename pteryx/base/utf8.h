// UTF-8, where any bytes may come in.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pteryx {

inline constexpr char32_t kReplacement = 0xFFFD;

struct Utf8Char {
  char32_t code = kReplacement;
  uint32_t size_bytes = 1;  // of the longest start of a character where it is not valid
  bool valid = false;
};

// The character that starts at a byte; `at` is inside the text. Long ones are read
// apart, so that tables of ASCII are read at once.
Utf8Char long_char_at(std::string_view text, size_t at);
inline Utf8Char char_at(std::string_view text, size_t at) {
  const auto first = static_cast<uint8_t>(text[at]);
  if (first < 0x80) return {.code = first, .size_bytes = 1, .valid = true};
  return long_char_at(text, at);
}

void append_utf8(std::string& out, char32_t code);

bool is_utf8(std::string_view text);

// The text with U+FFFD for every part that is not valid: the longest starts of characters, as
// Unicode advises.
std::string replace_invalid(std::string_view text);

// How many bytes there are before a last character that may still become whole.
size_t complete_prefix(std::string_view text);

}  // namespace pteryx
