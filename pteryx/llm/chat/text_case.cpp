// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/chat/text_case.h"

#include <algorithm>

#include "pteryx/llm/tokenizer/unicode.h"
#include "pteryx/llm/tokenizer/utf8.h"

namespace pteryx::llm::chat {
namespace {

constexpr char32_t kSharpS = 0xDF;
constexpr char32_t kDottedI = 0x130;

void append_upper(std::string& out, char32_t c) {
  if (c == kSharpS) {
    out += "SS";
  } else {
    append_utf8(out, to_upper(c));
  }
}

void append_lower(std::string& out, char32_t c) {
  append_utf8(out, to_lower(c));
  if (c == kDottedI) append_utf8(out, 0x307);
}

template <typename Visit>
void each_char(std::string_view text, Visit visit) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = char_at(text, at);
    visit(c.code);
    at += c.size_bytes;
  }
}

bool is_cased(char32_t c) { return to_lower(c) != c || to_upper(c) != c; }

bool is_in(std::string_view text, std::string_view chars) {
  if (!chars.empty()) return chars.find(text) != std::string_view::npos;
  return is_python_space(char_at(text, 0).code);
}

}  // namespace

bool is_python_space(char32_t c) { return is_space(c) || (c >= 0x1C && c <= 0x1F); }

std::string upper(std::string_view text) {
  std::string out;
  each_char(text, [&](char32_t c) { append_upper(out, c); });
  return out;
}

std::string lower(std::string_view text) {
  std::string out;
  each_char(text, [&](char32_t c) { append_lower(out, c); });
  return out;
}

std::string capitalize(std::string_view text) {
  std::string out;
  bool first = true;
  each_char(text, [&](char32_t c) {
    if (first) {
      append_upper(out, to_title(c));
    } else {
      append_lower(out, c);
    }
    first = false;
  });
  return out;
}

std::string title(std::string_view text) {
  std::string out;
  bool inside = false;
  each_char(text, [&](char32_t c) {
    if (inside) {
      append_lower(out, c);
    } else {
      append_utf8(out, to_title(c));
    }
    inside = is_cased(c);
  });
  return out;
}

std::string_view strip(std::string_view text, std::string_view chars, Ends ends) {
  while (ends != Ends::kRight && !text.empty()) {
    const size_t size = char_at(text, 0).size_bytes;
    if (!is_in(text.substr(0, size), chars)) break;
    text.remove_prefix(size);
  }
  while (ends != Ends::kLeft && !text.empty()) {
    size_t at = text.size() - 1;
    while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xC0U) == 0x80) --at;
    if (!is_in(text.substr(at), chars)) break;
    text = text.substr(0, at);
  }
  return text;
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to,
                        int64_t most) {
  std::string out;
  if (from.empty()) return std::string(text);
  size_t done = 0;
  for (size_t at = text.find(from); at != std::string_view::npos && most != 0;
       at = text.find(from, done)) {
    out.append(text, done, at - done).append(to);
    done = at + from.size();
    --most;
  }
  return out.append(text, done);
}

}  // namespace pteryx::llm::chat
