// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/tokenizer/unicode.h"

#include <algorithm>
#include <cstddef>

#include "pteryx/base/utf8.h"
#include "pteryx/llm/tokenizer/unicode_tables.h"

namespace pteryx::llm {
namespace {

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<int8_t>(c) >= 0; });
}

}  // namespace

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_word(char32_t c) {
  switch (kind_of(c)) {
    case CharKind::kLetter:
    case CharKind::kMark:
    case CharKind::kDigit:
    case CharKind::kLetterNumber:
    case CharKind::kConnector: return true;
    default: return c == 0x200C || c == 0x200D;  // the joiners
  }
}

bool is_numeric(char32_t c) {
  const CharKind kind = kind_of(c);
  return kind == CharKind::kDigit || kind == CharKind::kLetterNumber ||
         kind == CharKind::kOtherNumber;
}

bool is_punctuation(char32_t c) {
  if (c < 0x80) {
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
  }
  const CharKind kind = kind_of(c);
  return kind == CharKind::kConnector || kind == CharKind::kOtherPunctuation;
}

bool is_mark(char32_t c) { return kind_of(c) == CharKind::kMark; }

Result<std::string> normalize(std::string_view text, NormalForm form) {
  if (is_ascii(text)) return std::string(text);
  return normalize_by_tables(text, form);
}

size_t leading_space(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const Utf8Char c = char_at(text, at);
    if (!c.valid || !is_space(c.code)) break;
    at += c.size_bytes;
  }
  return at;
}

size_t trailing_space(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    size_t start = end - 1;
    while (start > 0 && end - start < 4 && (static_cast<uint8_t>(text[start]) & 0xC0U) == 0x80) {
      --start;
    }
    const Utf8Char c = char_at(text.substr(0, end), start);
    if (!c.valid || c.size_bytes != end - start || !is_space(c.code)) break;
    end = start;
  }
  return text.size() - end;
}

}  // namespace pteryx::llm
